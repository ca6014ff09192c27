"""Where the parts of a study lie in its folder."""

from __future__ import annotations

import hashlib
import re
from itertools import product
from pathlib import Path

from ...artefacts import COMPARISON, PROBE, RESULT, STUDY
from ...needs.derived import Reference

_PLACES = ("", "cells/*/", "states/", "summaries/", "retained/", ".claims/")
# Globs of the temporary files of what is written whole.
WRITTEN = tuple(map("".join, product(("", "runs/*/"), _PLACES, (".*.tmp",))))


# Stands for the study's folder: places of cells are relative to it.
HERE = Path()


def cell_path(folder: Path, node: str, key: int | str) -> Path:
    """Return the file of the cell of one node at one step or weight block.

    Examples
    --------
    >>> cell_path(Path("s"), "loss", 100).as_posix()
    's/cells/loss/100.safetensors'
    """
    return folder / "cells" / node / f"{_safe(str(key))}.safetensors"


def state_path(folder: Path, node: str) -> Path:
    """Return the file of an observable's state."""
    return folder / "states" / f"{_safe(node)}.safetensors"


def reference_path(folder: Path, need: Reference) -> Path:
    """Return the file of what `need` gave at the reference step."""
    digest = hashlib.blake2b(repr(need).encode(), digest_size=8).hexdigest()
    return folder / "states" / f"reference-{digest}.safetensors"


def summary_path(folder: Path, node: str) -> Path:
    """Return the file of the summary of an observable."""
    return folder / "summaries" / f"{_safe(node)}.safetensors"


def run_folder(folder: Path, run: str) -> Path:
    """Return the folder of a control run, which is laid out as that of the study.

    Examples
    --------
    >>> run_folder(Path("s"), "turned 0").parent.as_posix()
    's/runs'
    """
    return folder / "runs" / _safe(run)


def digests_path(folder: Path) -> Path:
    """Return the file of the digests of weights."""
    return folder / "digests.json"


def probe_path(folder: Path) -> Path:
    """Return the file of what was found at the first checkpoint."""
    return folder / PROBE


def finished_path(folder: Path) -> Path:
    """Return the file with the mark of a whole result."""
    return folder / "finished"


def page_note_path(folder: Path) -> Path:
    """Return the file that says of which page it is known what it was made of."""
    return folder / "page"


def claim_path(folder: Path, task: str) -> Path:
    """Return the file of the claim on a task."""
    return folder / ".claims" / f"{_safe(task)}.json"


def settings_path(folder: Path) -> Path:
    """Return the file of the frozen settings; its presence marks a study folder."""
    return folder / STUDY


def comparison_path(folder: Path) -> Path:
    """Return the file that marks the folder of a comparison."""
    return folder / COMPARISON


def result_path(folder: Path) -> Path:
    """Return the merged result, an xarray DataTree on Zarr."""
    return folder / RESULT


def _safe(name: str) -> str:
    """Return `name` as a file name; a digest keeps names apart that only differ in odd signs."""
    clean = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    if clean == name and len(name) < 120:
        return name
    return f"{clean[:100]}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"
