"""Whether a folder is as its last run left it, so that neither cells nor weights need be read.

A mark is a digest of all that a result follows from: what the fingerprints of its cells hold, the
code of this library, the environment, and the stamps of every file of a cell, of the merged result
and of the run's folders. A stamp has the change time, which nobody sets: it tells a file that was
written over with the same size and time. Whatever has changed, the folder is read and checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import xarray as xr

from ...problems.table import problems_of
from ...store import plain
from ...trajectory import Trajectory
from ...trajectory.weights.files import stamp_of
from ...whole_files import write_whole
from ..cells.cache import settled
from ..cells.environment import Environment, differences, environment
from ..cells.merge import provenance
from ..folder.code import library_code
from ..folder.layout import finished_path, result_path
from ..planning.parts import RunPart


def mark_of(
    folder: Path,
    parts: Sequence[RunPart],
    described: Mapping[str, Any],
    read: Sequence[Any],
) -> str:
    """Return the mark of a folder as it is now.

    Parameters
    ----------
    folder, parts
        Of the study; its runs.
    described
        What the root of the result says of the study.
    read
        The stamps of what the audit reads, from before it was read.
    """
    studied = parts[0]
    device = parts[0].job.settings.device
    content: list[Any] = [described, provenance()["provenance"], library_code()]
    content += [environment(device), read]
    for part in parts:
        beside = [other.graph for other in parts[1:]] if part is studied else []
        cells = [*part.graph.cells(), *chain(*part.graph.summaries(beside))]
        content += [(cell.label, str(cell.place), repr(cell.reads)) for cell in cells]
        content += [settled(cell.components) for cell in cells]
        content += [
            part.graph.digests.whole(checkpoint) for checkpoint in part.trajectory
        ]
        content += stamps(part.job.folder / cell.place for cell in cells)
    content += stamps(sorted(result_path(folder).rglob("*")))
    text = json.dumps(plain(content), default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def is_finished(folder: Path, mark: Callable[[], str]) -> bool:
    """Return whether the last run that was whole has left the mark that is made if there is one."""
    path = finished_path(folder)
    return path.is_file() and path.read_bytes() == mark().encode()


def is_whole(tree: xr.DataTree, here: Environment) -> bool:
    """Return whether nothing is to be said of a result: no problem, and computed in `here`."""
    problems = problems_of(tree)
    made = json.loads(tree.attrs["provenance"])
    most = made.get("libraries", {}) | made.get("kernels", {})
    return not (problems or problems.notes or differences([("", most)], here))


def note_finished(folder: Path, mark: str) -> None:
    """Leave the mark of a whole result."""
    write_whole(finished_path(folder), mark.encode())


def files_read(trajectory: Trajectory) -> list[Any]:
    """Return the stamps of what an audit reads beside weights, and what a trajectory lists.

    Weights need none: a mark has their digests.
    """
    sources = list(chain.from_iterable((c, c.home, *c.sources) for c in trajectory))
    folders = dict.fromkeys([trajectory.path, *(source.path for source in sources)])
    inside = [sorted(f.iterdir()) for f in folders if f is not None and f.is_dir()]
    there = [checkpoint.is_downloaded for checkpoint in trajectory]
    return [there, repr(trajectory.catalogue), stamps(chain(*inside))]


def stamps(paths: Iterable[Path]) -> list[Any]:
    """Return the paths and stamps of files; folders have times that change with what lies in them."""
    return [(str(path), stamp_of(path.stat())) for path in paths if path.is_file()]
