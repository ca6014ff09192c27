"""What one worker does with a task: read a checkpoint once, and compute and write its cells.

These functions run in any process or thread. They take plain picklable values, return nothing
large, and leave every finished cell on disk at once.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import xarray as xr

from ... import activity
from ...errors import CheckpointError, NonFiniteError, StoreError
from ...needs import Need
from ...own_code import Sendable, reason
from ...scratch import trim_heap
from ...store import Cell, difference, plain, write_cell
from ...trajectory import Trajectory
from ...trees import found_in
from ..cells.ahead import Ahead
from ..cells.cache import check_cache, read_verified
from ..cells.dependencies import Dependencies, Shared
from ..cells.environment import environment, pinned
from ..cells.graph import (
    Context,
    ReferenceCell,
    StateCell,
    StepCell,
    StudyCell,
    header_of,
)
from ..cells.models import Job, Values, read_once
from ..folder.claims import claimed, gone, held, holder
from ..folder.code import code_of_cell, library_code

log = logging.getLogger("ontogeny.study")

_ENOUGH = 3  # equal failures
# How cells failed in this process, by run and node; None where one was done.
_failures: dict[tuple[str, str], Counter[str] | None] = {}


@dataclass(frozen=True)
class Task(Sendable):
    """Cells that are computed together, because they read the same checkpoint.

    Attributes
    ----------
    step
        The checkpoint that is read for its cells, if any.
    any_step
        Whether it may read checkpoints of other steps too.
    later
        What the cells of later tasks need of each step.
    ahead
        What is read of its step beside, so that it lies in files for later tasks.
    stays
        Whether what was read ahead of its step stays in files after it: controls begin there, or it
        is handed on.
    """

    label: str
    trajectory: Trajectory
    cells: tuple[StudyCell, ...]
    step: int | None = None
    any_step: bool = False
    later: Mapping[int, tuple[Need, ...]] = field(default_factory=dict)
    ahead: tuple[Need, ...] = ()
    stays: bool = False


@dataclass
class Done:
    """What a task reports.

    Attributes
    ----------
    taken_by
        Who else is working on the task: nothing was done of it then.
    blocked
        How many cells of a node fail for what failed before them, by node and reason.
    """

    label: str
    seconds: float = 0.0
    taken_by: str = ""
    problems: list[str] = field(default_factory=list)
    blocked: Counter[tuple[str, str]] = field(default_factory=Counter)


def run_task(job: Job, task: Task) -> Done:
    """Compute what is left of a task, unless another process works on it."""
    with claimed(job.folder, task.label) as ours:
        return compute_task(job, task) if ours else taken(job, task)


def compute_task(job: Job, task: Task) -> Done:
    """Compute what is left of a task with threads pinned; whoever calls this holds its claim."""
    begin = time.perf_counter()
    report = Done(task.label)
    if job.by_step:
        _note_weights(job, task)
    cells = [c for c in left_of(job, task) if not _is_blocked(job, c, report)]
    cells = [c for c in cells if not _is_copied(job, c, report)]
    # What other processes have computed is read where the states are fitted, if they are.
    if cells or (task.ahead and not task.cells):
        with pinned(job.settings.threads):
            _compute(job, task, cells, report)
    if task.step is not None and not (task.any_step or task.ahead or task.stays):
        Ahead(job.token, job.folder).drop(task.step)
    report.seconds = time.perf_counter() - begin
    return report


def _note_weights(job: Job, task: Task) -> None:
    """Hash the checkpoint that a task is about to read, unless that was done.

    Of processes that are about to read the same one, one hashes it and the others wait for it.
    """
    if task.step is None or not _is_left(job, task):
        return
    folder = job.studied or job.folder
    for source in task.trajectory[task.step].sources:
        with held(folder, f"digests of {source.label}"):
            job.digests.read_again()
            job.digests.note(source)
            with held(folder, "digests"):
                job.digests.save()


def _is_left(job: Job, task: Task) -> bool:
    """Return whether any cell of a task is not in the folder, whatever it is of."""
    return any(not (job.folder / cell.place).exists() for cell in task.cells)


def taken(job: Job, task: Task) -> Done:
    """Report that another process works on a task."""
    return Done(
        task.label, taken_by=holder(job.folder, task.label) or "another process"
    )


def give_up(job: Job, task: Task, why: str) -> Done:
    """Note of what is left of a task that it failed, without trying it."""
    report = Done(task.label)
    for cell in left_of(job, task):
        fingerprint = cell.fingerprint(header_of(job.folder, [cell]))
        outcome = _cell(job, xr.Dataset(), fingerprint, f"failed: {why}")
        _write(job, cell, outcome)
        _report(cell, outcome, report)
    return report


def left_of(job: Job, task: Task) -> list[StudyCell]:
    """Return the cells of a task that nobody has computed by now.

    What failed elsewhere is left: it is tried here too, so that this process can report why.
    """
    # One header function for all cells of the task, as each reads a file once and remembers it.
    header = header_of(job.folder, task.cells)
    options = (job.folder, task.trajectory, job.digests.whole, header)
    return [cell for cell in task.cells if cell.check(*options).outcome != "done"]


def _is_copied(job: Job, cell: StudyCell, report: Done) -> bool:
    """Return whether the studied run has the very same cell, as where a control begins."""
    if job.studied is None or not isinstance(cell, StepCell):
        return False
    fingerprint = cell.fingerprint(header_of(job.folder, [cell]))
    if check_cache(job.studied / cell.place, fingerprint).outcome != "done":
        return False
    result = read_verified(job.studied / cell.place)
    _write(job, cell, result)
    _report(cell, result, report)
    return True


def _hopeless(job: Job, cell: StudyCell) -> str:
    """Return how an observable failed three times, if none of its cells was done: it ends then."""
    if not cell.observed:  # a summary says what failed
        return ""
    failures = _failures.get((job.token, cell.node)) or Counter()
    return next((why for why, count in failures.items() if count >= _ENOUGH), "")


def _left_out(job: Job, cell: StudyCell) -> str:
    """Return how an observable failed when it was tried; a summary says so itself."""
    is_tried = cell.observed or isinstance(cell, StateCell)
    return job.left_out.get(cell.node, "") if is_tried else ""


def _note(job: Job, cell: StudyCell, status: str) -> None:
    """Note how a cell ended."""
    key = job.token, cell.node
    if status == "done" and cell.observed:
        # It can be computed, so what fails has a reason of its own.
        _failures[key] = None
    # A checkpoint that diverged, or a damaged file, says nothing of others.
    elif status.startswith("failed: ") and NonFiniteError.__name__ not in status:
        failures = _failures.setdefault(key, Counter())
        if failures is not None:
            failures[status.removeprefix("failed: ")] += 1


def _is_blocked(job: Job, cell: StudyCell, report: Done) -> bool:
    """Return whether a cell is left out, or what it needs has failed; the cell then says so."""
    header = header_of(job.folder, [cell])
    reason = _left_out(job, cell) or cell.blocked(header) or _hopeless(job, cell)
    if reason:
        report.blocked[cell.node, reason] += 1
        _write(
            job,
            cell,
            _cell(job, xr.Dataset(), cell.fingerprint(header), f"failed: {reason}"),
        )
    return bool(reason)


def _compute(job: Job, task: Task, cells: Sequence[StudyCell], report: Done) -> None:
    values = _values(job, task, cells)
    shared = Shared()
    is_alone = len(cells) == 1
    for cell in cells:
        header = header_of(job.folder, [cell])
        dependencies = Dependencies(job.folder, cell.reads, header)
        fingerprint = cell.fingerprint(dependencies.header)
        log.debug("phase=%s %s", cell.phase, cell.label)
        activity.now(f"computing {cell.label}")
        try:
            _check_code(job, cell)
            context = Context(
                job, task.trajectory, values, dependencies, task.later, is_alone, shared
            )
            outcome = cell.compute(context)
            _check_weights(job, task)
            full = {**fingerprint, **outcome.observed_dependencies}
            cell_result = _cell(job, outcome.data, full, outcome.status, outcome.notes)
        except Exception as error:  # one cell's fault must not cost the others theirs
            cell_result = _failed(job, error, fingerprint)
        try:
            _write(job, cell, cell_result)
        except OSError:  # of the disk, which is nobody's fault
            raise
        except Exception as error:  # what it holds cannot be stored
            cell_result = _failed(job, error, fingerprint)
            _write(job, cell, cell_result)
        _note(job, cell, cell_result.status)
        _report(cell, cell_result, report)
        trim_heap()


def _check_code(job: Job, cell: StudyCell) -> None:
    """Check that the code that computes here is what the cell's fingerprint names.

    A worker that starts later, or on another machine, may import other files of this library.
    """
    if library_code() == job.library:
        return
    observable = job.by_name.get(cell.node)
    if isinstance(cell, ReferenceCell):
        needs: Sequence[Need] = [cell.need]
    else:
        needs = job.by_name[cell.node].needs()
    here = plain(code_of_cell(type(cell).__name__, observable, needs, job.model_class))
    planned = {name: cell.components[name] for name in here}
    if changed := difference(planned, here):
        raise StoreError(
            f"this worker runs other code than the process that planned the study ({changed[0]}); "
            "update both, and run again."
        )


def _check_weights(job: Job, task: Task) -> None:
    """Check that the weights that were read are those that the cells' fingerprints name."""
    steps = (
        [task.step]
        if task.step is not None and not task.any_step
        else task.trajectory.steps
    )
    for checkpoint in (task.trajectory[int(step)] for step in steps):
        if job.digests.has_changed(checkpoint):
            raise CheckpointError(
                f"step {checkpoint.step} was written over after this run had begun; the same "
                "command reads it anew."
            )


def _values(job: Job, task: Task, cells: Iterable[StudyCell]) -> dict[Need, Any]:
    """Return what the cells of a task need of its checkpoint."""
    needs = [*task.ahead, *chain(*(cell.needs(job.by_name) for cell in cells))]
    if task.step is None or not needs:
        return {}
    later = task.later.get(task.step, ())
    return Values(needs, partial(read_once, job, task.trajectory, task.step, later))


def _failed(job: Job, error: Exception, fingerprint: Mapping[str, Any]) -> Cell:
    log.debug("observing failed", exc_info=error)
    line = str(error).strip().split("\n")[0]
    missing = isinstance(error, CheckpointError)
    status = f"missing: {line}" if missing else f"failed: {reason(error)}"
    return _cell(job, xr.Dataset(), fingerprint, status)


def _cell(
    job: Job,
    data: xr.Dataset,
    fingerprint: Mapping[str, Any],
    status: str = "done",
    notes: Mapping[str, Any] | None = None,
) -> Cell:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    where = environment(job.settings.device)
    return Cell(
        data,
        status,
        fingerprint,
        {"created": now, "environment": where, **(notes or {})},
    )


def _write(job: Job, cell: StudyCell, result: Cell) -> None:
    log.debug("phase=writing cell=%s", cell.label)
    if not job.folder.is_dir():  # writing would make another folder in its place
        raise StoreError(gone(job.folder))
    write_cell(job.folder / cell.place, result)


def _report(cell: StudyCell, result: Cell, report: Done) -> None:
    if result.status != "done":
        report.problems.append(f"{cell.label}: {result.status}")
    statuses = found_in(result.data, "status")
    if not cell.observed or statuses is None or statuses.ndim != 1:
        return
    (dim,) = statuses.dims
    where = "" if dim == "layer" else f"{dim} "
    for label, status in zip(statuses[dim].values, statuses.values, strict=True):
        if status != "done":
            report.problems.append(f"{cell.label}, {where}{label}: {status}")
