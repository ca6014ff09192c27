"""A study: observables mapped over a trajectory, resumable, in any executor."""

from __future__ import annotations

import dataclasses
import json
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import xarray as xr

from ..errors import ArgumentError, StoreError
from ..inputs import Inputs
from ..observables import Observable
from ..store import Cell, sweep, write_json
from ..tasks import BUNDLED
from ..trajectory import Prefetch, Trajectory
from .build import Graph, has_begun
from .cache import DigestCache, VerifiedCellCache
from .checks import check_observables, check_trajectory, named_inputs
from .claims import held, sweep_claims
from .controls import ControlRun, Controls, observed_of_controls
from .graph import StateCell, observed_steps
from .layout import WRITTEN, digests_path, run_folder, settings_path
from .memory import too_large, workers_here
from .merge import merge, write_result
from .plan import Plan, make_plan, price, sum_of_plans
from .probe import Probe, probe
from .progress import Progress, Silent
from .readings import Job, release_skeleton
from .schedule import RunPart, compute, summarise
from .settings import (
    Settings,
    noise_steps,
    old_reference,
    resolve_device,
    resolve_reference,
    without_reference,
)
from .speaking import MOVE_IT, doubts, of_control, refusal, say, say_problems
from .threads import pinned
from .unit_counts import repeated_texts, unit_counts

log = logging.getLogger("ontogeny.study")


class Study:
    """Observables mapped over the checkpoints of one run.

    Parameters
    ----------
    trajectory
        The checkpoints.
    inputs
        One set of texts or tokens, or several by name; observables name one by ``on=``.
    observables
        What is observed; their names must differ.
    reference
        ``"last"``, ``"first"`` or a step: what distances are measured to.
    batch_size, device, dtype, threads
        How the model is run. Numbers repeat bit for bit where these are equal; ``threads`` is per
        task, so that several workers do not fight for cores.
    noise
        At about how many steps noise floors are measured; 0 switches them off, and curves are then
        shown without.
    title
        Heading of the page; from the trajectory by default.
    controls, control_kind
        How many control runs are made of the run's own checkpoints, and how: runs that moved as
        far and learned nothing (see `Trajectory.control`). At least two give a spread to judge
        by; without any, nothing can be called learned.
    control_steps
        At about how many steps each control run is read.
    control_runs
        Trained control runs, as ``{name: trajectory}``; see `ontogeny.training.scrambled`.

    Raises
    ------
    ArgumentError
        If an argument is not what it must be.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        inputs: Inputs | Mapping[str, Any],
        observables: Sequence[Observable],
        *,
        reference: str | int = "last",
        batch_size: int = 16,
        device: str = "auto",
        dtype: str = "float32",
        threads: int = 1,
        noise: int = 5,
        title: str | None = None,
        controls: int = 0,
        control_kind: str = "turned",
        control_steps: int = 12,
        control_runs: Mapping[str, Trajectory] | Sequence[Trajectory] = (),
    ) -> None:
        self.trajectory = check_trajectory(trajectory)
        self.inputs = named_inputs(inputs)
        self.observables = check_observables(observables)
        self.title = title or trajectory.title
        self._reference, self._noise = reference, noise
        self._options: dict[str, Any] = {
            "batch_size": batch_size,
            "device": resolve_device(device),
            "dtype": dtype,
            "threads": threads,
        }
        self._controls = Controls.checked(
            trajectory, controls, control_kind, control_steps, control_runs
        )
        self._hold: Callable[[Trajectory], AbstractContextManager[Trajectory]] = nullcontext
        self._tried: Sequence[Observable] = ()
        self._settings({})  # refuses a wrong option now and not after the first download

    @property
    def device(self) -> str:
        """Where the models run, with ``"auto"`` resolved."""
        return str(self._options["device"])

    def plan(self, folder: str | Path | None = None, *, rereference: bool = False) -> Plan:
        """Return what a run into `folder` would read, compute and store; nothing is written.

        Observables that have no finished cell in `folder` are tried on two texts of one
        checkpoint. What fails in that way is said in the plan's notes, and ``refused`` if it would
        certainly fail in a run. `rereference` is an argument of `run`.
        """
        path = None if folder is None else Path(folder)
        frozen = without_reference(_frozen(path), rereference)
        self._try_first(path)
        parts = self._parts(path, self._settings(frozen), frozen, VerifiedCellCache())
        plan = sum_of_plans([part.plan for part in parts])
        problem = too_large(plan.activation_bytes)
        plan.notes += [f"too large: {problem}"] if problem else []
        plan.notes += repeated_texts(self.inputs)
        plan.notes += filter(None, [old_reference(self._reference, plan.steps, frozen)])
        plan.notes += doubts(self._probe.failures)
        plan.refused = refusal(self._probe.failures)
        return plan

    def _parts(
        self,
        folder: Path | None,
        settings: Settings,
        frozen: Mapping[str, Any],
        read: VerifiedCellCache,
    ) -> list[RunPart]:
        """Return the run that is studied, and its control runs, with what is to do of each."""
        token, settings = uuid.uuid4().hex, self._with_positions(settings)
        steps, kept = [int(s) for s in self.trajectory.steps], _frozen_steps(frozen, self._controls)
        parts = [self._part("", self.trajectory, folder, settings, token, read)]
        for control in self._controls.runs(steps, settings.reference_step, kept):
            where = None if folder is None else run_folder(folder, control.name)
            reference = settings.reference_step
            reference = reference if reference in control.steps else control.steps[-1]
            own = dataclasses.replace(settings, noise_steps=(), reference_step=reference)
            # Checkpoints made of the run's own fit into the same module.
            shared = token if control.given is None else uuid.uuid4().hex
            trajectory = control.of(self.trajectory)
            parts.append(
                self._part(control.name, trajectory, where, own, shared, read, control=control)
            )
        return parts

    def _part(
        self,
        name: str,
        trajectory: Trajectory,
        folder: Path | None,
        settings: Settings,
        token: str,
        read: VerifiedCellCache,
        control: ControlRun | None = None,
    ) -> RunPart:
        observables = observed_of_controls(self.observables) if name else self.observables
        graph = Graph(
            trajectory, self.inputs, observables, settings, self._probe, _digests(folder), name
        )
        where = Path() if folder is None else folder.resolve()
        job = Job(token, where, observables, self.inputs, settings)
        return RunPart(name, job, graph, self._plan(graph, folder, read), control)

    def _plan(self, graph: Graph, folder: Path | None, read: VerifiedCellCache) -> Plan:
        plan = make_plan(graph.cells(), folder, graph.trajectory, graph.digests, read, graph.name)
        others = [
            entry.cell.needs(graph.by_name)
            for entry in plan.prepared
            if entry.to_do and isinstance(entry.cell, StateCell)
            for _ in range(self._others_read(entry.cell, folder, graph))
        ]
        price(plan, self._probe, self.inputs, graph.by_name, graph.settings.batch_size, others)
        return plan

    def _others_read(self, cell: StateCell, folder: Path | None, graph: Graph) -> int:
        """Return how many steps beside the reference are read for a state, as far as is known."""
        if graph.by_name[cell.node].prepares_over_steps:
            return len(graph.steps) - 1
        stored = {} if folder is None else observed_steps(folder / cell.place)
        return len(stored.get("other_weights", ()))

    def run(
        self,
        folder: str | Path,
        executor: Executor | None = None,
        progress: Progress | None = None,
        *,
        max_revisions: int | None = None,
        rereference: bool = False,
        keep_going: bool = False,
    ) -> xr.DataTree:
        """Compute what is missing in `folder`, merge, and return the result.

        Parameters
        ----------
        folder
            The study's folder; a run that was stopped goes on where it was. Several runs of the
            same study, also on other machines, share its work: each takes what no other works on.
        executor
            Any ``concurrent.futures.Executor``; ``None`` computes here, one task after another.
        progress
            Receives what happens.
        max_revisions
            At most so many Hub revisions that this run downloads lie on disk at once: the next is
            fetched while one is used, and deleted afterwards. Matrices that are read over all
            steps are kept in the folder. None keeps every revision in the cache.
        rereference
            A folder keeps the step that ``reference="last"`` (or ``"first"``) was when it was
            begun. True moves it to what is the last (or first) step now; all that is compared
            with it is computed again.
        keep_going
            Whether to compute the rest where the dry run shows that an observable must fail.

        Returns
        -------
        xarray.DataTree
            One node for each observable; also on disk as ``result.zarr``.

        Raises
        ------
        ArgumentError
            If the activations of one checkpoint in each worker of this machine need more memory
            than it has. Workers elsewhere are not counted. Or if an observable that has no cell
            yet refuses two checkpoints, and not `keep_going`.
        StoreError
            If the folder is not usable, or worker processes died; finished cells are kept.

        Warns
        -----
        StudyWarning
            Once, at the end, if anything failed; ``result.problems()`` lists it. Also if the
            reference is no longer the last (or first) step.
        """
        path, progress = Path(folder), progress or Silent()
        settings = self._prepare_folder(path, rereference)
        if max_revisions is not None:
            self._hold = self._one_revision
        self._try_first(path)
        read = VerifiedCellCache()
        parts = self._parts(path, settings, _frozen(path), read)
        main, plan = parts[0], sum_of_plans([part.plan for part in parts])
        _save(parts)
        at_once = min(workers_here(executor), plan.checkpoints)
        if problem := too_large(plan.activation_bytes, at_once):
            raise ArgumentError(problem)
        if (refused := refusal(self._probe.failures)) and not keep_going:
            raise ArgumentError(refused)
        if old := old_reference(self._reference, plan.steps, _frozen(path)):
            say(old, *MOVE_IT)
        for line in [
            *repeated_texts(self.inputs),
            *doubts(self._probe.failures),
            *(f"changed: {c}" for c in plan.changes()),
        ]:
            progress.note(line)
        try:
            problems = compute(parts, executor, progress, max_revisions)
        finally:
            progress.finish()
            _save(parts)
            release_skeleton()
        for part in parts[1:]:
            summarise(part.job, part.trajectory, part.graph.summaries(), read, progress.note)
        summaries = main.graph.summaries([part.graph for part in parts[1:]])
        summarise(main.job, self.trajectory, summaries, read, progress.note)
        units = unit_counts(self.observables, self.inputs)
        tree = merge(main.job.folder, self.observables, self._attributes(parts, read), read, units)
        failed = [
            f"{n}: {d.attrs['failed']}" for n, d in tree.children.items() if "failed" in d.attrs
        ]
        tree.attrs["problems"] = json.dumps([*problems, *failed])
        tree.encoding["source"] = str(write_result(path, tree))  # as xarray notes it
        for finding in json.loads(tree.attrs["findings"]):
            progress.note(f"audit: {finding['message']}")
        say_problems(tree)
        return tree

    def _attributes(self, parts: Sequence[RunPart], read: Callable[[Path], Cell]) -> dict[str, Any]:
        found, graph = self._probe, parts[0].graph
        controls = [
            part.control.to_dict() | of_control(part, read)
            for part in parts
            if part.control is not None
        ]
        settings = {
            **graph.settings.to_dict(),
            "reference": self._reference,
            "batch_difference": found.batch_difference,
            "observables": {o.name: {"kind": o.kind, **o.arguments()} for o in self.observables},
        }
        inputs = [
            {
                "name": name,
                "fingerprint": i.fingerprint,
                **_bundled(i),
                **i.source_of_tokens,
                **i.counts,
            }
            for name, i in self.inputs.items()
        ]
        return {
            "title": self.title,
            "nodes": json.dumps([o.name for o in self.observables]),
            "settings": json.dumps(settings),
            "steps": json.dumps([int(s) for s in self.trajectory.steps]),
            "reference_step": graph.settings.reference_step,
            "controls": json.dumps(controls),
            "findings": json.dumps(self.trajectory.audit().to_records()),
            "inputs": json.dumps(inputs),
            "trajectory": json.dumps(self._source(graph.digests)),
            "model": json.dumps({"class": found.model_class, "parameters": found.parameters}),
        }

    def _source(self, digests: DigestCache) -> dict[str, Any]:
        """Return where the checkpoints come from, and a digest of the weights of each."""
        found = {str(c.step): digests.whole(c) for c in self.trajectory}
        return {**self.trajectory.provenance(), "digests": found}

    @cached_property
    def _probe(self) -> Probe:
        settings = self._settings({})
        with pinned(settings.threads):
            return probe(
                self.trajectory, self.inputs, self.observables, settings, self._hold, self._tried
            )

    def _try_first(self, folder: Path | None) -> None:
        """Choose the observables that get a dry run: those with no finished cell yet."""
        self._tried = [o for o in self.observables if folder is None or not has_begun(folder, o)]

    @contextmanager
    def _one_revision(self, trajectory: Trajectory) -> Iterator[Trajectory]:
        """Give checkpoints that leave no download behind."""
        with Prefetch(trajectory, max_revisions=1) as prefetch:
            yield prefetch.trajectory

    def _with_positions(self, settings: Settings) -> Settings:
        return dataclasses.replace(settings, positions=self._probe.positions)

    def _settings(self, frozen: Mapping[str, Any]) -> Settings:
        steps = [int(s) for s in self.trajectory.steps]
        return Settings(
            reference_step=resolve_reference(self._reference, steps, frozen),
            noise_steps=noise_steps(
                steps,
                self._noise,
                frozen.get("noise_steps", ()) if frozen.get("noise") == self._noise else (),
            ),
            **self._options,
        )

    def _prepare_folder(self, folder: Path, rereference: bool) -> Settings:
        # Listed before it is read: another process may be making the same folder at this moment.
        others = folder.is_dir() and any(p.name[0] != "." for p in folder.iterdir())
        if others and not _frozen(folder):
            raise StoreError(
                f"{folder} holds files that are no study; give an empty or a new folder."
            )
        with held(folder, "settings"):  # the first of several processes freezes them for all
            frozen = without_reference(_frozen(folder), rereference)
            settings = self._settings(frozen)
            steps = [int(s) for s in self.trajectory.steps]
            controls = self._controls.runs(
                steps, settings.reference_step, _frozen_steps(frozen, self._controls)
            )
            write_json(
                settings_path(folder),
                {
                    "format": "ontogeny-study-1",
                    "title": self.title,
                    "reference": self._reference,
                    "reference_step": settings.reference_step,
                    "noise": self._noise,
                    "noise_steps": list(settings.noise_steps),
                    "steps": steps,
                    "control_steps": self._controls.steps,
                    "controls": [control.to_dict() for control in controls],
                },
            )
        sweep_claims(folder)
        sweep(folder, *WRITTEN)  # what killed workers left half-written
        return settings


def _frozen(folder: Path | None) -> dict[str, Any]:
    if folder is None or not settings_path(folder).exists():
        return {}
    try:
        frozen = json.loads(settings_path(folder).read_text())
    except ValueError as error:
        raise StoreError(f"{settings_path(folder)} is damaged: {error}") from error
    if not isinstance(frozen, dict) or not frozen:
        raise StoreError(f"{settings_path(folder)} is damaged: it holds no settings.")
    return frozen


def _frozen_steps(frozen: Mapping[str, Any], controls: Controls) -> Sequence[int]:
    """Return the steps at which a folder has controls, if as many steps are still asked for."""
    made = [c for c in frozen.get("controls", ()) if c["random_state"] is not None]
    return made[0]["steps"] if made and frozen["control_steps"] == controls.steps else ()


def _bundled(inputs: Inputs) -> dict[str, str]:
    """Return the name of texts that come with the package: the page says that these were used."""
    return {"source": inputs.source} if inputs.source in BUNDLED.values() else {}


def _save(parts: Sequence[RunPart]) -> None:
    for part in parts:
        part.graph.digests.save()


def _digests(folder: Path | None) -> DigestCache:
    return DigestCache(None if folder is None else digests_path(folder))
