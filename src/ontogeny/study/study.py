"""A study: observables mapped over a trajectory, resumable, in any executor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import xarray as xr

from ..errors import ArgumentError
from ..inputs import Inputs
from ..observables import Observable
from ..trajectory import Prefetch, Trajectory
from .cache import VerifiedCellCache
from .checks import check_observables, check_trajectory, named_inputs
from .controls import Controls
from .examination import Examination
from .frozen import freeze, frozen_settings, frozen_steps
from .memory import too_large, workers_here
from .parts import Parts
from .plan import Plan, sum_of_plans
from .probe import Probe, probe
from .progress import Progress, Silent
from .readings import release_skeleton
from .result import merged
from .schedule import compute, save_digests, summarise
from .settings import (
    Settings,
    noise_steps,
    old_reference,
    resolve_device,
    resolve_reference,
    without_reference,
)
from .speaking import MOVE_IT, doubts, refusal, say, say_problems
from .threads import pinned
from .unit_counts import repeated_texts


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
        self._examination = Examination(self._probe, self.observables)
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
        frozen = without_reference(frozen_settings(path), rereference)
        found, read = self._examination.of(path), VerifiedCellCache()
        parts = self._parts(path, found, read).made(self._settings(frozen), frozen)
        plan = sum_of_plans([part.plan for part in parts])
        problem = too_large(plan.activation_bytes)
        plan.notes += [f"too large: {problem}"] if problem else []
        plan.notes += repeated_texts(self.inputs)
        plan.notes += filter(None, [old_reference(self._reference, plan.steps, frozen)])
        plan.notes += doubts(found.failures)
        plan.refused = refusal(found.failures)
        return plan

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
            If the activations that each worker of this machine holds at once need more memory
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
        settings = freeze(path, rereference, self._frozen)
        if max_revisions is not None:
            self._hold = self._one_revision
        found, read = self._examination.of(path), VerifiedCellCache()
        frozen = frozen_settings(path)
        parts = self._parts(path, found, read).made(settings, frozen)
        plan = sum_of_plans([part.plan for part in parts])
        save_digests(parts)
        _refuse(plan, found, executor, keep_going)
        self._announce(plan, found, frozen, progress)
        try:
            problems = compute(parts, executor, progress, max_revisions)
        finally:
            progress.finish()
            save_digests(parts)
            release_skeleton()
        summarise(parts, read, progress.note)
        tree = merged(path, parts, self.title, self._reference, problems, read)
        for finding in json.loads(tree.attrs["findings"]):
            progress.note(f"audit: {finding['message']}")
        say_problems(tree)
        return tree

    def _announce(
        self, plan: Plan, probe: Probe, frozen: Mapping[str, Any], progress: Progress
    ) -> None:
        """Say what a run should be known for before it computes."""
        if old := old_reference(self._reference, plan.steps, frozen):
            say(old, *MOVE_IT)
        changed = [f"changed: {each}" for each in plan.changes()]
        for line in [*repeated_texts(self.inputs), *doubts(probe.failures), *changed]:
            progress.note(line)

    def _parts(self, folder: Path | None, probe: Probe, read: VerifiedCellCache) -> Parts:
        return Parts(
            self.trajectory, self.inputs, self.observables, self._controls, probe, folder, read
        )

    def _probe(self, tried: Sequence[Observable]) -> Probe:
        settings = self._settings({})
        with pinned(settings.threads):
            return probe(
                self.trajectory, self.inputs, self.observables, settings, self._hold, tried
            )

    @contextmanager
    def _one_revision(self, trajectory: Trajectory) -> Iterator[Trajectory]:
        """Give checkpoints that leave no download behind."""
        with Prefetch(trajectory, max_revisions=1) as prefetch:
            yield prefetch.trajectory

    def _settings(self, frozen: Mapping[str, Any]) -> Settings:
        steps = [int(s) for s in self.trajectory.steps]
        same_noise = frozen.get("noise") == self._noise
        kept = frozen.get("noise_steps", ()) if same_noise else ()
        return Settings(
            reference_step=resolve_reference(self._reference, steps, frozen),
            noise_steps=noise_steps(steps, self._noise, kept),
            **self._options,
        )

    def _frozen(self, frozen: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
        """Return the settings by what a folder has frozen, and what it keeps from now on."""
        settings, steps = self._settings(frozen), [int(s) for s in self.trajectory.steps]
        kept = frozen_steps(frozen, self._controls)
        controls = self._controls.runs(steps, settings.reference_step, kept)
        return settings, {
            "title": self.title,
            "reference": self._reference,
            "reference_step": settings.reference_step,
            "noise": self._noise,
            "noise_steps": list(settings.noise_steps),
            "steps": steps,
            "control_steps": self._controls.steps,
            "controls": [control.to_dict() for control in controls],
        }


def _refuse(plan: Plan, probe: Probe, executor: Executor | None, keep_going: bool) -> None:
    """Raise what would make a run fail later."""
    at_once = min(workers_here(executor), plan.checkpoints)
    if problem := too_large(plan.activation_bytes, at_once):
        raise ArgumentError(problem)
    if (refused := refusal(probe.failures)) and not keep_going:
        raise ArgumentError(refused)
