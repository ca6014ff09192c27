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
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr

from .._version import __version__
from ..errors import CheckpointError, StoreError
from ..inputs import Inputs
from ..needs import Gradients, InputSet, Model, Need, Reference, Series, Weights
from ..observables import Observable
from ..store import Cell, read_cell, write_cell
from ..trajectory import Trajectory
from .layout import cell_path, reference_path, state_path
from .readings import (
    ReadBlock,
    ReadSeries,
    ReadStep,
    RunView,
    restore_reference,
    store_reference,
)
from .settings import Settings
from .threads import pinned

__all__ = ["BlockTask", "Job", "SeriesTask", "StateTask", "StepTask", "Task", "run_task"]

log = logging.getLogger("ontogeny.study")
_local = threading.local()


@dataclass(frozen=True)
class Job:
    """What all tasks of one run share."""

    token: str
    folder: Path
    observables: tuple[Observable, ...]
    inputs: Mapping[str, Inputs]
    settings: Settings

    @cached_property
    def by_name(self) -> dict[str, Observable]:
        """The observables by their node names."""
        return {o.name: o for o in self.observables}


@dataclass(frozen=True)
class StateTask:
    """Compute reference values and states before the steps are observed."""

    trajectory: Trajectory
    references: Mapping[Reference, Mapping[str, Any]]
    states: Mapping[str, Mapping[str, Any]]
    label: str = "references"


@dataclass(frozen=True)
class StepTask:
    """Observe one checkpoint: ``cells`` maps node names to the fingerprints to be written."""

    trajectory: Trajectory
    step: int
    cells: Mapping[str, Mapping[str, Any]]

    @property
    def label(self) -> str:
        """What the progress line calls it."""
        return f"step {self.step}"


@dataclass(frozen=True)
class BlockTask:
    """Observe weight blocks over all steps: ``cells`` maps (node, block) to fingerprints."""

    trajectory: Trajectory
    cells: Mapping[tuple[str, str], Mapping[str, Any]]
    label: str = "weights"


@dataclass(frozen=True)
class SeriesTask:
    """Observe one layer of another observable's series."""

    steps: tuple[int, ...]
    node: str
    layer: str
    fingerprint: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What the progress line calls it."""
        return f"{self.node} of {self.layer}"


_EXCLUSIVE = (Model, Gradients)  # needs that hand over the module itself

Task: TypeAlias = StateTask | StepTask | BlockTask | SeriesTask


@dataclass
class Done:
    """What a task reports: cells by outcome, and reasons."""

    label: str
    seconds: float = 0.0
    done: int = 0
    problems: list[str] = field(default_factory=list)


def run_task(job: Job, task: Task) -> Done:
    """Run one task with threads pinned, and say what came out."""
    begin = time.perf_counter()
    report = Done(task.label)
    with pinned(job.settings.threads):
        if isinstance(task, StateTask):
            _compute_states(job, task, report)
        elif isinstance(task, StepTask):
            _observe_step(job, task, report)
        elif isinstance(task, SeriesTask):
            _observe_series(job, task, report)
        else:
            _observe_blocks(job, task, report)
    report.seconds = time.perf_counter() - begin
    return report


def read_needs(
    job: Job, trajectory: Trajectory, step: int, needs: Sequence[Need]
) -> dict[Need, Any]:
    """Load one checkpoint into this thread's skeleton and read all `needs` of it."""
    from .. import capture

    log.debug("phase=loading step=%d", step)
    model = _local.model = _skeleton(job, trajectory).load(trajectory[step])
    exclusive = [n for n in dict.fromkeys(needs) if isinstance(n, _EXCLUSIVE)]
    sets = [n for n in dict.fromkeys(needs) if isinstance(n, InputSet)]
    wanted = [n for n in dict.fromkeys(needs) if not isinstance(n, (*_EXCLUSIVE, InputSet))]
    log.debug("phase=capturing step=%d", step)
    settings = capture.ReadingSettings(
        batch_size=job.settings.batch_size,
        device=job.settings.device,
        positions=job.settings.positions,
    )
    values = dict(capture.read(model, wanted, job.inputs, settings)) if wanted else {}
    for given in sets:
        values[given] = settings.layout(job.inputs[capture.reading.input_set(given, job.inputs)])
    for need in exclusive:
        values[need] = model
        if isinstance(need, Gradients):
            values[need] = capture.gradients(model, need, job.inputs, settings)
    return values


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
    return [n for n in observable.needs() if not isinstance(n, Reference)]


def _is_read(need: Need) -> bool:
    return not isinstance(need, Model | Gradients | Weights | Series)


def _has_model(observable: Observable) -> bool:
    return any(isinstance(need, _EXCLUSIVE) for need in observable.needs())


def _lent(observable: Observable) -> AbstractContextManager[Any]:
    """Return a context after which this thread's model is as it was, if `observable` gets it."""
    from .. import capture

    return capture.untouched(_local.model) if _has_model(observable) else nullcontext()


def _compute_states(job: Job, task: StateTask, report: Done) -> None:
    reference = job.settings.reference_step
    needs: list[Need] = [r.need for r in task.references]
    names = list(task.states)
    needs += [n for name in names for n in own_needs(job.by_name[name]) if _is_read(n)]
    values = read_needs(job, task.trajectory, reference, needs) if needs else {}
    for wanted, fingerprint in task.references.items():
        data = store_reference(values[wanted.need])
        log.debug("phase=writing reference=%s", wanted)
        write_cell(reference_path(job.folder, wanted), _cell(data, fingerprint))
        report.done += 1
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


def _observe_step(job: Job, task: StepTask, report: Done) -> None:
    names = list(task.cells)
    needs = [n for name in names for n in own_needs(job.by_name[name])]
    try:
        values = read_needs(job, task.trajectory, task.step, needs)
    except CheckpointError as error:
        _write_all(job, task, f"missing: {_line(error)}", report)
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
        try:
            log.debug("phase=fitting block=%s node=%s", block, name)
            reading = ReadBlock(task.trajectory, block, job.settings.reference_step)
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


def load_state(job: Job, name: str) -> xr.Dataset | None:
    """Return the stored state of an observable, memory-mapped, or None."""
    path = state_path(job.folder, name)
    if not path.exists():
        return None
    cell = read_cell(path, verify=False)
    if cell.status != "done":
        raise StoreError(f"its state {cell.status}")
    return None if "empty" in cell.data.attrs else cell.data


def load_reference(job: Job, need: Reference) -> Any:
    """Return what `need` gave at the reference step, memory-mapped."""
    return restore_reference(read_cell(reference_path(job.folder, need), verify=False).data)


def _cell(data: xr.Dataset, fingerprint: Mapping[str, Any], status: str = "done") -> Cell:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Cell(data, status, fingerprint, {"created": now, "ontogeny": __version__})


def _failed(error: Exception, fingerprint: Mapping[str, Any]) -> Cell:
    log.debug("observing failed", exc_info=error)
    return _cell(xr.Dataset(), fingerprint, f"failed: {type(error).__name__}: {_line(error)}")


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


def _write_all(job: Job, task: StepTask, status: str, report: Done) -> None:
    for name, fingerprint in task.cells.items():
        cell = _cell(xr.Dataset(), fingerprint, status)
        _write(cell_path(job.folder, name, task.step), cell, f"{name} at step {task.step}", report)


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
