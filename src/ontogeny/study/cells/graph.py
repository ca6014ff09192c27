"""A study as a graph of cells: what each of them is a function of, and how it is computed.

A cell is a function of what its fingerprint names: an observable with its arguments, the code that
it can reach, weights, inputs and settings, and the checksums of the cells that it reads. Those are
references (a need at the reference step), states (what `prepare` returns), the cells of another
observable (a series), and for a summary all cells of its observable and the summaries that it
depends on.
"""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import xarray as xr

from ...errors import ArgumentError, StoreError
from ...needs import Need
from ...observables import Observable
from ...store import Cell, difference, plain, read_header
from ...summary.controls import with_controls
from ...trajectory import Checkpoint, Trajectory
from ...words.names import named
from .ahead import as_dataset
from .cache import Checked, check_cache, settled
from .dependencies import REPLACED, Dependencies, Header, Shared
from .environment import counted, environment_of
from .merge import stack, summarised, summary_data
from .models import Job, own_needs, release_skeleton, restored
from .readings import ReadSeries, ReadStep, RunView, load_state


@dataclass(frozen=True)
class Context:
    """What a worker gives to the cells of one task.

    Attributes
    ----------
    dependencies
        What the cell reads that is computed.
    later
        What cells of other tasks will read of each step.
    is_alone
        Whether no other cell reads these values.
    shared
        What the observables of its checkpoint compute alike.
    """

    job: Job
    trajectory: Trajectory
    values: dict[Need, Any]
    dependencies: Dependencies
    later: Mapping[int, Sequence[Need]] = field(default_factory=dict)
    is_alone: bool = False
    shared: Shared = field(default_factory=Shared)


@dataclass(frozen=True)
class Outcome:
    """What was computed for a cell.

    Attributes
    ----------
    observed_dependencies
        What it turned out to depend on beside its fingerprint.
    notes
        What is kept with it and is no part of the fingerprint.
    """

    data: xr.Dataset
    status: str = "done"
    observed_dependencies: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.data, xr.Dataset):
            kind = type(self.data).__name__
            raise ArgumentError(
                f"an observable must return an xarray.Dataset; got {kind}."
            )


@dataclass(frozen=True)
class StudyCell(abc.ABC):
    """One cell of a study: `node` names its observable, `key` its step, block or layer.

    Attributes
    ----------
    place
        Where it lies in the study's folder.
    label
        What messages call it.
    components
        What its fingerprint holds beside the cells that it reads.
    reads
        The cells that it reads, as places in the folder.
    sources
        The cells that it reads, where another run in the same folder might replace them.
    observed
        Whether it is what an observable observes.
    phase
        What the log calls its computation.
    reads_as
        What its fingerprint calls the cells that it reads.
    """

    node: str
    key: int | str
    place: Path
    label: str
    components: Mapping[str, Any]
    reads: tuple[Path, ...] = ()
    sources: tuple[StudyCell, ...] = ()
    observed: ClassVar[bool] = True
    phase: ClassVar[str] = "fitting"
    reads_as: ClassVar[str] = "state"

    def of_reads(self, headers: Sequence[Header]) -> Any:
        """Return what the fingerprint holds of the cells that it reads: their checksums."""
        return [checksum for checksum, _ in headers]

    def fingerprint(self, header: Callable[[Path], Header] | None) -> dict[str, Any]:
        """Return the fingerprint; without `header`, what it reads is still to be computed."""
        components = settled(self.components)
        if not self.reads:
            return dict(components)
        state = (
            self.of_reads([header(place) for place in self.reads]) if header else None
        )
        return {
            **components,
            self.reads_as: "to be computed" if state is None else state,
        }

    def observed_dependencies(
        self, path: Path, trajectory: Trajectory, digest: Callable[[Checkpoint], str]
    ) -> dict[str, Any]:
        """Return today's value of what the stored cell turned out to depend on."""
        return {}

    def check(
        self,
        folder: Path | None,
        trajectory: Trajectory,
        digest: Callable[[Checkpoint], str],
        header: Callable[[Path], Header] | None,
    ) -> Checked:
        """Return the outcome of what is stored for it, and why (see `check_cache`)."""
        path = None if folder is None else folder / self.place
        if path is None or not path.exists():  # so that nothing is hashed for it
            return check_cache(path, {})
        expected = self.fingerprint(header)
        expected |= self.observed_dependencies(path, trajectory, digest)
        return check_cache(path, expected)

    def needs(self, by_name: Mapping[str, Observable]) -> list[Need]:
        """Return what is read of the task's checkpoint before it is computed."""
        return []

    def blocked(self, header: Callable[[Path], Header]) -> str:
        """Return why it cannot be computed: what it reads has failed. Empty if it can."""
        return ""

    @abc.abstractmethod
    def compute(self, context: Context) -> Outcome:
        """Return what it holds."""


def header_of(
    folder: Path, cells: Iterable[StudyCell] = ()
) -> Callable[[Path], Header]:
    """Return a function that gives checksum and status of a cell of a folder.

    Of the sources of `cells` only those count that are of the settings of this run: a run with
    others may have put its own in their place.
    """
    by_place: dict[Path, StudyCell] = {}
    queue = list(cells)
    while queue:
        new = [source for source in queue.pop().sources if source.place not in by_place]
        by_place |= {source.place: source for source in new}
        queue += new

    @cache
    def header(place: Path) -> Header:
        if not (folder / place).exists():
            return "absent", "missing"
        try:
            content = read_header(folder / place)
        except StoreError as error:
            return "unreadable", f"missing: {error}"
        if place in by_place:
            expected = plain(by_place[place].fingerprint(header))
            # A state's fingerprint also holds the steps that `prepare` turned out to read, which
            # are known only afterwards: they are no reason to take it for another run's.
            fingerprint = content["fingerprint"]
            same = {
                name: value for name, value in fingerprint.items() if name in expected
            }
            if changed := difference(same, expected):
                why = f"another run has put its own in its place ({changed[0]}); run again"
                return REPLACED, f"missing: {why}"
        return content["checksum"], content["status"]

    return header


def observed_steps(path: Path) -> Mapping[str, Any]:
    """Return the part of a stored fingerprint that says which other steps were read."""
    try:
        fingerprint = read_header(path)["fingerprint"]
    except StoreError:  # it is damaged, and found to be so when it is checked
        return {}
    return {
        name: fingerprint[name]
        for name in ("other_weights", "steps")
        if name in fingerprint
    }


@dataclass(frozen=True)
class ReferenceCell(StudyCell):
    """What a need gives at the reference step, which is `key`."""

    need: Need = field(kw_only=True)
    observed = False

    def needs(self, by_name: Mapping[str, Observable]) -> list[Need]:
        """Return the need."""
        return [self.need]

    def compute(self, context: Context) -> Outcome:
        """Return the value as a dataset."""
        return Outcome(as_dataset(context.values[self.need]))


def is_of_steps(path: Path) -> bool:
    """Return whether a stored state may be another one where the study has other steps."""
    return bool(read_header(path)["provenance"].get("of_steps", True))


@dataclass(frozen=True)
class StateCell(StudyCell):
    """What an observable's `prepare` returns."""

    observed = False
    phase = "preparing"

    def observed_dependencies(
        self, path: Path, trajectory: Trajectory, digest: Callable[[Checkpoint], str]
    ) -> dict[str, Any]:
        """Return today's weights of the steps that `prepare` has read, and today's steps."""
        dependencies = dict(observed_steps(path))
        steps = [int(step) for step in trajectory.steps]
        if "other_weights" in dependencies:
            dependencies["other_weights"] = {
                s: digest(trajectory[int(s)]) if int(s) in steps else "absent"
                for s in dependencies["other_weights"]
            }
        return (
            {**dependencies, "steps": steps}
            if "steps" in dependencies
            else dependencies
        )

    def needs(self, by_name: Mapping[str, Observable]) -> list[Need]:
        """Return what is read at the reference step; `prepare` reads the rest itself."""
        return [need for need in own_needs(by_name[self.node]) if not need.exclusive]

    def compute(self, context: Context) -> Outcome:
        """Return the state; an empty dataset stands for None."""
        observable = context.job.by_name[self.node]
        # Read again from files where it is asked again: 200 MB of 100,000 tokens would be idle.
        once = context.is_alone and observable.prepares_over_steps
        view = RunView(
            context.job,
            context.trajectory,
            observable,
            context.values,
            context.later,
            once,
        )
        try:
            state = observable.prepare(view)
        finally:
            if any(need.exclusive for need in observable.needs()):
                release_skeleton()  # whatever was done to the model is gone with it
        data = xr.Dataset(attrs={"empty": 1}) if state is None else state
        notes = {"of_steps": view.is_of_steps}
        return Outcome(
            data, observed_dependencies=view.observed_dependencies(), notes=notes
        )


@dataclass(frozen=True)
class ObservedCell(StudyCell):
    """What an observable observes; it reads its references and its state."""

    def blocked(self, header: Callable[[Path], Header]) -> str:
        """Return which reference or state has failed, and why."""
        for place in self.reads:
            if (status := header(place)[1]) != "done":
                is_reference = place.name.startswith("reference-")
                what = f"reference step {self.components['reference_step']}"
                why = status.replace("missing:", "is missing:", 1)
                return f"{what if is_reference else 'its preparation'} {why}"
        return ""


@dataclass(frozen=True)
class StepCell(ObservedCell):
    """What an observable observes at one checkpoint."""

    def needs(self, by_name: Mapping[str, Observable]) -> list[Need]:
        """Return the observable's own needs."""
        return own_needs(by_name[self.node])

    def compute(self, context: Context) -> Outcome:
        """Observe the checkpoint."""
        job = context.job
        observable = job.by_name[self.node]
        values = {need: context.values[need] for need in self.needs(job.by_name)}
        read = context.dependencies.read
        reading = ReadStep(job, observable, int(self.key), values, read, context.shared)
        with restored(observable):
            return Outcome(observable.observe(reading, load_state(observable, read)))


@dataclass(frozen=True)
class LayerCell(StudyCell):
    """What an observable observes of one layer of another observable's cells."""

    steps: tuple[int, ...] = field(kw_only=True)
    reads_as = "series"

    def of_reads(self, headers: Sequence[Header]) -> dict[str, str]:
        """Return the checksum at each step."""
        pairs = zip(self.steps, headers, strict=True)
        return {str(step): checksum for step, (checksum, _) in pairs}

    def compute(self, context: Context) -> Outcome:
        """Observe the layer; an observable of series prepares no state."""
        observable = context.job.by_name[self.node]
        assert observable.source is not None
        source = observable.source
        read = context.dependencies.read
        reading = ReadSeries(context.job, source, self.steps, str(self.key), read)
        return Outcome(observable.observe(reading, None))


@dataclass(frozen=True)
class SummaryCell(StudyCell):
    """What follows from all cells of an observable, and from the summaries it depends on.

    After its cells it reads the summaries of other nodes, those of the same observable in control
    runs, and the state, where variables of it are kept.
    """

    cells: tuple[StudyCell, ...] = field(kw_only=True)
    controls: tuple[str, ...] = field(kw_only=True, default=())
    observed = False
    phase = "summarising"
    reads_as = "cells"

    def of_reads(self, headers: Sequence[Header]) -> str:
        """Return one digest: what it reads is too much to be listed."""
        content = repr([*zip(map(str, self.reads), headers, strict=True)])
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()

    def compute(self, context: Context) -> Outcome:
        """Stack the cells and summarise them."""
        job = context.job
        observable = job.by_name[self.node]
        parts = {
            cell.key: self._read_cell(cell.place, context.dependencies)
            for cell in self.cells
        }
        stacked = stack(observable, parts, job.folder)
        stacked.attrs["reference_step"] = job.settings.reference_step
        # `reads` are the cells, then the nodes it depends on, the controls, and last the state.
        count = len(observable.depends_on)
        beside = len(self.controls)
        places = self.reads[len(self.cells) :][: count + beside]
        read = [summary_data(context.dependencies.read(place)) for place in places]
        stacked = self._with_state(stacked, context)
        others = dict(zip(observable.depends_on, read[:count], strict=True))
        controls = dict(zip(self.controls, read[count:], strict=True))
        stacked = with_controls(
            stacked, controls, observable.quantities, observable.compared
        )
        data = named(summarised(observable, stacked, others), observable.names())
        failed = data.attrs.get("failed")
        texts = [
            str(name) for name, v in data.variables.items() if v.dtype.kind in "TU"
        ]
        status = "done" if failed is None else f"failed: {failed}"
        cells = [cell for cell in parts.values() if isinstance(cell, Cell)]
        where = counted(environment_of(cell.provenance) for cell in cells)
        notes = {"texts": texts, "environments": where}
        return Outcome(data.assign_attrs(plain(data.attrs)), status, notes=notes)

    def _read_cell(self, place: Path, dependencies: Dependencies) -> Cell | str:
        """Return a cell, or why there is none of the settings of this run."""
        checksum, status = dependencies.header(place)
        return status if checksum == REPLACED else dependencies.read(place)

    def _with_state(self, stacked: xr.Dataset, context: Context) -> xr.Dataset:
        """Return the cells with what is kept of the state, where there is any of both."""
        observable = context.job.by_name[self.node]
        names = observable.state_variables if observable.prepares else ()
        if not names or not set(stacked.data_vars) - {"status"}:
            return stacked
        state = context.dependencies.read(self.reads[-1]).data
        return stacked.assign({name: state[name] for name in names if name in state})
