"""What one worker does: read a checkpoint once, observe it, write its cells.

These functions run in any process or thread. They take plain picklable values, return nothing
large, and leave every finished cell on disk at once.
"""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import xarray as xr

from .._version import __version__
from ..errors import CheckpointError, StoreError
from ..needs import Need, Reference
from ..observables import Observable
from ..store import Cell, read_cell, read_header, write_cell
from ..trajectory import Trajectory
from .claims import claimed, holder
from .layout import cell_path, reference_path, state_path
from .readings import (
    ReadBlock,
    ReadSeries,
    ReadStep,
    RunView,
    restore_reference,
    store_reference,
)
from .remaining import remaining
from .tasks import BlockTask, Done, Job, SeriesTask, StateTask, StepTask, Task
from .threads import pinned

__all__ = ["run_task"]

log = logging.getLogger("ontogeny.study")
_local = threading.local()


def run_task(job: Job, task: Task) -> Done:
    """Run what is left of one task with threads pinned, unless another process is at it."""
    begin = time.perf_counter()
    with claimed(job.folder, task.label) as ours:
        if not ours:
            return Done(task.label, taken_by=holder(job.folder, task.label) or "another process")
        rest, found = remaining(job, task)
        report = Done(task.label, found=found)
        if rest is not None:
            with pinned(job.settings.threads):
                _run(job, rest, report)
    report.seconds = time.perf_counter() - begin
    return report


def _run(job: Job, task: Task, report: Done) -> None:
    if isinstance(task, StateTask):
        _compute_states(job, task, report)
    elif isinstance(task, StepTask):
        _observe_step(job, task, report)
    elif isinstance(task, SeriesTask):
        _observe_series(job, task, report)
    else:
        _observe_blocks(job, task, report)


def read_needs(
    job: Job, trajectory: Trajectory, step: int, needs: Sequence[Need]
) -> dict[Need, Any]:
    """Load one checkpoint into this thread's skeleton and read all `needs` of it."""
    from .. import capture

    log.debug("phase=loading step=%d", step)
    model = _local.model = _skeleton(job, trajectory).load(trajectory[step])
    log.debug("phase=capturing step=%d", step)
    return capture.read(model, needs, job.inputs, job.settings.reading_settings())


def _skeleton(job: Job, trajectory: Trajectory) -> Any:
    """Return this thread's one model skeleton of the run."""
    if getattr(_local, "token", None) != job.token:
        settings = job.settings
        _local.skeleton = trajectory.skeleton(settings.device, settings.torch_dtype())
        _local.token = job.token
    return _local.skeleton


def release_skeleton() -> None:
    """Let go of this thread's model."""
    _local.token = _local.skeleton = _local.model = None


def own_needs(observable: Observable) -> list[Need]:
    """Return the needs that are read of every checkpoint itself."""
    return [n for n in observable.needs() if n.at_step is n]


def _is_read(need: Need) -> bool:
    return need.over == "step" and not need.exclusive


def _has_model(observable: Observable) -> bool:
    return any(need.exclusive for need in observable.needs())


def _lent(observable: Observable) -> AbstractContextManager[Any]:
    """Return a context after which this thread's model is as it was, if `observable` gets it."""
    from .. import capture

    return capture.untouched(_local.model) if _has_model(observable) else nullcontext()


def _compute_states(job: Job, task: StateTask, report: Done) -> None:
    reference = job.settings.reference_step
    needs: list[Need] = [r.need for r in task.references]
    names = list(task.states)
    needs += [n for name in names for n in own_needs(job.by_name[name]) if _is_read(n)]
    values, errors = _read_what_can_be(job, task.trajectory, reference, needs)
    for wanted, fingerprint in task.references.items():
        if wanted.need in errors:  # the cells that need it will say so; the others go on
            cell = _failed(errors[wanted.need], fingerprint)
        else:
            cell = _cell(store_reference(values[wanted.need]), fingerprint)
        label = f"{type(wanted.need).__name__} of reference step {reference}"
        _write(reference_path(job.folder, wanted), cell, label, report)
    for name, fingerprint in task.states.items():
        observable = job.by_name[name]
        view = RunView(job, task.trajectory, observable, {reference: values})
        log.debug("phase=preparing node=%s", name)
        try:
            state = observable.prepare(view)
            full = {**fingerprint, **view.components()}
            cell = _cell(xr.Dataset(attrs={"empty": 1}) if state is None else state, full)
        except Exception as error:  # its own cells will say so; the other observables go on
            cell = _failed(error, fingerprint)
        finally:
            if _has_model(observable):
                release_skeleton()  # whatever was done to the model is gone with it
        _write(state_path(job.folder, name), cell, f"the state of {name}", report)


def _read_what_can_be(
    job: Job, trajectory: Trajectory, step: int, needs: Sequence[Need]
) -> tuple[dict[Need, Any], dict[Need, Exception]]:
    """Return the values of `needs`, and the error of each that cannot be read."""
    values: dict[Need, Any] = {}
    errors: dict[Need, Exception] = {}
    try:
        values = read_needs(job, trajectory, step, needs) if needs else {}
    except Exception as error:  # what one need cannot have must not cost the others theirs
        log.debug("reading together failed (%s); reading one by one", error)
        for need in dict.fromkeys(needs):
            try:
                values |= read_needs(job, trajectory, step, [need])
            except Exception as own:
                errors[need] = own
    return values, errors


def _observe_step(job: Job, task: StepTask, report: Done) -> None:
    names = [n for n in task.cells if not _is_blocked(job, n, task.step, task.cells[n], report)]
    if not names:
        return
    needs = [n for name in names for n in own_needs(job.by_name[name])]
    try:
        values = read_needs(job, task.trajectory, task.step, needs)
    except CheckpointError as error:
        for name in names:
            cell = _failed(error, task.cells[name])
            label = f"{name} at step {task.step}"
            _write(cell_path(job.folder, name, task.step), cell, label, report)
        return
    except Exception as error:  # what one need cannot have must not cost the others theirs
        log.debug("reading together failed (%s); reading one by one", error)
        values = None
    for name in names:
        observable = job.by_name[name]
        path = cell_path(job.folder, name, task.step)
        try:
            own = values
            if own is None:
                own = read_needs(job, task.trajectory, task.step, own_needs(observable))
            reading = ReadStep(job, observable, task.step, own)
            log.debug("phase=fitting step=%d node=%s", task.step, name)
            with _lent(observable):
                data = observable.observe(reading, load_state(job, name))
            cell = _cell(data, task.cells[name])
        except Exception as error:  # one observable's fault must not cost the others their cells
            cell = _failed(error, task.cells[name])
        _write(path, cell, f"{name} at step {task.step}", report)


def _observe_blocks(job: Job, task: BlockTask, report: Done) -> None:
    for (name, block), fingerprint in task.cells.items():
        observable = job.by_name[name]
        if _is_blocked(job, name, block, fingerprint, report):
            continue
        try:
            log.debug("phase=fitting block=%s node=%s", block, name)
            reading = ReadBlock(task.trajectory, task.blocks[block], job.settings.reference_step)
            cell = _cell(observable.observe(reading, load_state(job, name)), fingerprint)
        except Exception as error:  # as above: the other blocks go on
            cell = _failed(error, fingerprint)
        _write(cell_path(job.folder, name, block), cell, f"{name} of {block}", report)


def _observe_series(job: Job, task: SeriesTask, report: Done) -> None:
    observable = job.by_name[task.node]
    assert observable.source is not None
    try:
        log.debug("phase=fitting layer=%s node=%s", task.layer, task.node)
        reading = ReadSeries(job, observable.source, task.steps, task.layer)
        cell = _cell(observable.observe(reading, None), task.fingerprint)
    except Exception as error:  # as above: the other layers go on
        cell = _failed(error, task.fingerprint)
    _write(cell_path(job.folder, task.node, task.layer), cell, task.label, report)


def _is_blocked(
    job: Job, name: str, key: int | str, fingerprint: Mapping[str, Any], report: Done
) -> bool:
    """Return whether a reference or state that a cell needs has failed; its cell then says so."""
    paths = [
        (reference_path(job.folder, need), f"reference step {job.settings.reference_step}")
        for need in job.by_name[name].needs()
        if isinstance(need, Reference)
    ]
    paths.append((state_path(job.folder, name), "its preparation"))
    for path, what in paths:
        status = read_header(path)["status"] if path.exists() else "done"
        if status != "done":
            reason = f"{what} {status.replace('missing:', 'is missing:', 1)}"
            write_cell(
                cell_path(job.folder, name, key),
                _cell(xr.Dataset(), fingerprint, f"failed: {reason}"),
            )
            report.blocked[name, reason] += 1
            return True
    return False


def load_state(job: Job, name: str) -> xr.Dataset | None:
    """Return the stored state of an observable, memory-mapped, or None."""
    path = state_path(job.folder, name)
    if not path.exists():
        return None
    data = read_cell(path, verify=False).data
    return None if "empty" in data.attrs else data


def load_reference(job: Job, need: Reference) -> Any:
    """Return what `need` gave at the reference step, memory-mapped.

    Raises
    ------
    StoreError
        If it could not be read there.
    """
    cell = read_cell(reference_path(job.folder, need), verify=False)
    if cell.status != "done":
        raise StoreError(f"reference step {job.settings.reference_step} {cell.status}")
    return restore_reference(cell.data)


def _cell(data: xr.Dataset, fingerprint: Mapping[str, Any], status: str = "done") -> Cell:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Cell(data, status, fingerprint, {"created": now, "ontogeny": __version__})


def _failed(error: Exception, fingerprint: Mapping[str, Any]) -> Cell:
    log.debug("observing failed", exc_info=error)
    line = str(error).strip().split("\n")[0]
    if isinstance(error, CheckpointError):
        return _cell(xr.Dataset(), fingerprint, f"missing: {line}")
    return _cell(xr.Dataset(), fingerprint, f"failed: {type(error).__name__}: {line}")


def _write(path: Path, cell: Cell, label: str, report: Done) -> None:
    log.debug("phase=writing cell=%s", label)
    write_cell(path, cell)
    if cell.status == "done":
        report.done += 1
    else:
        report.problems.append(f"{label}: {cell.status}")
    layers = cell.data.get("status")
    if layers is not None and "layer" in layers.dims:
        for layer, status in zip(layers.layer.values, layers.values, strict=True):
            if status != "done":
                report.problems.append(f"{label}, {layer}: {status}")
