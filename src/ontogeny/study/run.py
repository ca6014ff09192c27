"""What one worker does with a task: read a checkpoint once, and compute and write its cells.

These functions run in any process or thread. They take plain picklable values, return nothing
large, and leave every finished cell on disk at once.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from .._version import __version__
from ..errors import CheckpointError
from ..needs import Need
from ..store import Cell, read_cell, write_cell
from ..trajectory import Trajectory
from .claims import claimed, holder
from .graph import Context, StudyCell, header_of
from .readings import Job, Values, read_needs
from .threads import pinned

log = logging.getLogger("ontogeny.study")


@dataclass(frozen=True)
class Task:
    """Cells that are computed together, because they read the same checkpoint."""

    label: str
    trajectory: Trajectory
    cells: tuple[StudyCell, ...]
    step: int | None = None
    """The checkpoint that is read for its cells, if any."""
    any_step: bool = False
    """Whether it may read checkpoints of other steps too."""


@dataclass
class Done:
    """What a task reports."""

    label: str
    seconds: float = 0.0
    taken_by: str = ""
    """Who else is working on the task: nothing was done of it then."""
    problems: list[str] = field(default_factory=list)
    blocked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many cells of a node fail for what failed before them, by node and reason."""


def run_task(job: Job, task: Task, read: Callable[[Path], Cell] = read_cell) -> Done:
    """Compute what is left of a task with threads pinned, unless another process works on it."""
    begin = time.perf_counter()
    with claimed(job.folder, task.label) as ours:
        if not ours:
            return Done(task.label, taken_by=holder(job.folder, task.label) or "another process")
        report = Done(task.label)
        left = [c for c in left_of(job, task, read) if not _is_blocked(job, c, report)]
        if left:
            with pinned(job.settings.threads):
                _compute(job, task, left, read, report)
    report.seconds = time.perf_counter() - begin
    return report


def left_of(job: Job, task: Task, read: Callable[[Path], Cell] = read_cell) -> list[StudyCell]:
    """Return the cells of a task that nobody has computed by now.

    What failed elsewhere is left: it is tried here too, so that this process can report why.
    """
    header = header_of(job.folder)
    options = (job.folder, task.trajectory, job.digests.whole, header, read)
    return [cell for cell in task.cells if cell.check(*options)[0] != "done"]


def _is_blocked(job: Job, cell: StudyCell, report: Done) -> bool:
    """Return whether a reference or state that a cell needs has failed; the cell then says so."""
    reason = cell.blocked(header_of(job.folder))
    if reason:
        report.blocked[cell.node, reason] += 1
        _write(job, cell, _stored(xr.Dataset(), _fingerprint(job, cell), f"failed: {reason}"))
    return bool(reason)


def _compute(
    job: Job,
    task: Task,
    cells: Iterable[StudyCell],
    read: Callable[[Path], Cell],
    report: Done,
) -> None:
    context = Context(job, task.trajectory, _values(job, task, cells), read)
    for cell in cells:
        fingerprint = _fingerprint(job, cell)
        log.debug("phase=%s %s", cell.phase, cell.label)
        try:
            found = cell.compute(context)
            full = {**fingerprint, **found.observed_dependencies}
            stored = _stored(found.data, full, found.status, found.notes)
        except Exception as error:  # one cell's fault must not cost the others theirs
            stored = _failed(error, fingerprint)
        try:
            _write(job, cell, stored)
        except OSError:  # of the disk, which is nobody's fault
            raise
        except Exception as error:  # what it holds cannot be stored
            stored = _failed(error, fingerprint)
            _write(job, cell, stored)
        _report(cell, stored, report)


def _values(job: Job, task: Task, cells: Iterable[StudyCell]) -> Mapping[Need, Any]:
    """Return what the cells of a task need of its checkpoint."""
    needs = [need for cell in cells for need in cell.needs(job.by_name)]
    if task.step is None or not needs:
        return {}
    try:
        return Values(needs, partial(read_needs, job, task.trajectory, task.step))
    except CheckpointError as error:
        return Values.failed(needs, error)


def _fingerprint(job: Job, cell: StudyCell) -> dict[str, Any]:
    return cell.fingerprint(header_of(job.folder))


def _failed(error: Exception, fingerprint: Mapping[str, Any]) -> Cell:
    log.debug("observing failed", exc_info=error)
    line = str(error).strip().split("\n")[0]
    if isinstance(error, CheckpointError):
        return _stored(xr.Dataset(), fingerprint, f"missing: {line}")
    return _stored(xr.Dataset(), fingerprint, f"failed: {type(error).__name__}: {line}")


def _stored(
    data: xr.Dataset,
    fingerprint: Mapping[str, Any],
    status: str = "done",
    notes: Mapping[str, Any] | None = None,
) -> Cell:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Cell(
        data, status, fingerprint, {"created": now, "ontogeny": __version__, **(notes or {})}
    )


def _write(job: Job, cell: StudyCell, stored: Cell) -> None:
    log.debug("phase=writing cell=%s", cell.label)
    write_cell(job.folder / cell.place, stored)


def _report(cell: StudyCell, stored: Cell, report: Done) -> None:
    if stored.status != "done":
        report.problems.append(f"{cell.label}: {stored.status}")
    statuses = stored.data.get("status")
    if not cell.observed or statuses is None or statuses.ndim != 1:
        return
    (dim,) = statuses.dims
    where = "" if dim == "layer" else f"{dim} "
    for label, status in zip(statuses[dim].values, statuses.values, strict=True):
        if status != "done":
            report.problems.append(f"{cell.label}, {where}{label}: {status}")
