"""A study: observables mapped over a trajectory, resumable, in any executor."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, StoreError
from ..inputs import Inputs
from ..markup import html_block, html_table
from ..observables import Observable
from ..trajectory import Trajectory
from ..whole_files import writing_whole
from .cells.cache import hash_once
from .cells.environment import environment
from .cells.graph import is_of_steps
from .cells.in_hand import is_read_by_step
from .cells.models import release_skeleton
from .cells.readings import state_node
from .checks import check_left_out, check_observables, check_trajectory, named_inputs
from .folder.controls import Controls
from .folder.frozen import entered, frozen_settings, frozen_steps, identity
from .folder.layout import state_path
from .folder.settings import (
    Settings,
    first_steps,
    noise_steps,
    old_reference,
    resolve_device,
    resolve_reference,
    without_reference,
)
from .merging import Merging
from .planning.changes import changed_summaries
from .planning.examination import Examination
from .planning.parts import Parts, RunPart
from .planning.plan import Plan, sum_of_plans
from .planning.power import what_controls_decide
from .planning.probe import Probe
from .progress import Progress, chosen_progress
from .results.finished import files_read, note_finished
from .results.result import Stated
from .results.study_result import StudyResult
from .running.executors import Submitting, workers_here
from .running.handed import Exchange, Handed
from .running.schedule import compute, save_digests, summaries_of, summarise
from .speaking import MOVE_IT, doubts, odd_texts, refusal, say


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
        task, so that several workers do not fight for cores. Weights stay in the precision that
        they are stored in, unless `dtype` names another, such as ``"float32"``: the largest of
        the checkpoints that are on this machine when the study begins. What is measured of
        activations is computed in float32 or float64 either way.
    weights
        ``"streamed"`` for models that do not fit into memory: each part of the model reads its
        weights from the files while it runs, once for every batch, and gives them up again. The
        numbers are the same to the last bit. On a GPU, one part's weights lie there at a time.
        ``"rebuilt"`` builds a module anew at every checkpoint, for one that keeps what it computed
        from its weights; a study of such a model finds that out and does so by itself.
    noise
        At about how many steps noise floors are measured; 0 switches them off, and curves are then
        shown without.
    title
        Heading of the page; from the trajectory by default.
    controls, control_kind
        How many control runs are made of the run's own checkpoints, and how: runs that moved as
        far and learned nothing (see `Trajectory.control`). At least two give a spread to judge
        by; without any, nothing but the loss can be called learned.
    control_steps
        At about how many steps each control run is read.
    control_runs
        Trained control runs, as ``{name: trajectory}``; see `ontogeny.training.scrambled`.
    left_out
        Why observables that one may expect are not in it, by kind; the page says so.

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
        dtype: str = "stored",
        threads: int = 1,
        weights: str = "loaded",
        noise: int = 5,
        title: str | None = None,
        controls: int = 0,
        control_kind: str = "turned",
        control_steps: int = 12,
        control_runs: Mapping[str, Trajectory] | Sequence[Trajectory] = (),
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self.trajectory = check_trajectory(trajectory)
        self.inputs = named_inputs(inputs)
        self.observables = check_observables(observables)
        self._title = title
        self._left_out = check_left_out(left_out or {})
        self._is_proposed = False
        self._handing: Handed | None = None
        self._handed: Handed | None = None
        self.title = title or trajectory.title
        self._reference = reference
        self._noise = noise
        self._options: dict[str, Any] = {
            "batch_size": batch_size,
            "device": resolve_device(device),
            "dtype": dtype,
            "threads": threads,
            "weights": weights,
        }
        self._controls = Controls.checked(
            trajectory, controls, control_kind, control_steps, control_runs
        )
        # Refuses a wrong option now, not after the first download.
        settings = self._settings({})
        self.examination = Examination(
            trajectory, self.inputs, self.observables, settings
        )

    @property
    def device(self) -> str:
        """Where the models run, with ``"auto"`` resolved."""
        return str(self._options["device"])

    @property
    def batch_size(self) -> int:
        """Texts in one forward pass."""
        return int(self._options["batch_size"])

    @property
    def control_runs(self) -> tuple[int, int]:
        """How many control runs there are, and at about how many steps each is read."""
        controls = self._controls
        return controls.count + len(controls.given), controls.steps

    def __repr__(self) -> str:
        return "\n".join(
            [f"Study {self.title!r}", *(f"  {k}: {v}" for k, v in self._described())]
        )

    def _repr_html_(self) -> str:
        return html_block("Study", self.title, html_table(("", ""), self._described()))

    def _described(self) -> list[tuple[str, str]]:
        """Return what is studied, on what, and beside what."""
        steps = self.trajectory.steps
        texts = [
            f"{name} ({len(input_set)} texts)"
            for name, input_set in self.inputs.items()
        ]
        return [
            (
                "checkpoints",
                f"{len(steps)}, {self.trajectory.unit}s {steps[0]} to {steps[-1]}",
            ),
            ("inputs", ", ".join(texts)),
            (
                "observables",
                ", ".join(observable.name for observable in self.observables),
            ),
            ("control runs", self._controls.words),
            ("device", self.device),
        ]

    def over(self, trajectory: Trajectory, **options: Any) -> Study:
        """Return the same study of other checkpoints, with other options where they are given.

        Raises
        ------
        ArgumentError
            If they do not fit.

        Examples
        --------
        >>> import torch, ontogeny as og
        >>> run = og.Trajectory.from_models(
        ...     {s: torch.nn.Linear(2, 2) for s in (0, 5, 10)}
        ... )
        >>> texts = og.Inputs.from_tokens([[1, 2]])
        >>> study = og.Study(run, texts, [og.observables.WeightChange()])
        >>> study.over(run.select(stop=5), noise=0).trajectory.steps
        array([0, 5])
        """
        arguments: dict[str, Any] = {
            "reference": self._reference,
            "noise": self._noise,
            "title": self._title,
            "controls": self._controls.count,
            "control_kind": self._controls.kind,
            "control_steps": self._controls.steps,
            "control_runs": self._controls.given,
            "left_out": self._left_out,
            **self._options,
        }
        observables = options.pop("observables", self.observables)
        return Study(trajectory, self.inputs, observables, **arguments | options)

    def plan(
        self, folder: str | Path | None = None, *, rereference: bool = False
    ) -> Plan:
        """Return what a run into `folder` would read, compute and store; nothing is written.

        Observables that have no finished cell in `folder` are tried on two texts of one
        checkpoint. What fails in that way is said in the plan's notes, and ``refused`` if it would
        certainly fail in a run. `rereference` is an argument of `run`.
        """
        path = None if folder is None else Path(folder)
        frozen = without_reference(frozen_settings(path), rereference)
        examined = self.examination.of(path)
        of_study = replace(
            self._parts(path, examined), compared=bool(path and path.exists())
        )
        parts = of_study.made(self._settings(frozen), frozen)
        plan = sum_of_plans([part.plan for part in parts])
        runs = dict.fromkeys(entry.run for entry in plan.entries if entry.run)
        if len(plan.steps) > 1:
            kinds = [observable.kind for observable in self.observables]
            plan.notes += what_controls_decide(list(runs), kinds)
        plan.notes += _memory_notes(plan)
        plan.notes += odd_texts(self.inputs)
        plan.notes += filter(None, [old_reference(self._reference, plan.steps, frozen)])
        plan.notes += plan.elsewhere(environment(self.device))
        plan.notes += examined.fallback.notes
        if path is not None:
            summaries = changed_summaries(summaries_of(parts))
            plan.notes += [f"changed: {change}" for change in summaries]
        plan.notes += doubts(examined.failures, len(self.observables))
        plan.refused = refusal(examined.failures)
        return plan

    def run(
        self,
        folder: str | Path,
        executor: Submitting | None = None,
        progress: Progress | bool | None = None,
        *,
        max_revisions: int | None = None,
        rereference: bool = False,
        keep_going: bool = False,
    ) -> StudyResult:
        """Compute what is missing in `folder`, merge, and return the result.

        Parameters
        ----------
        folder
            The study's folder; a run that was stopped goes on where it was. Several runs of the
            same study, also on other machines, share its work: each takes what no other works on.
        executor
            Any ``concurrent.futures.Executor``, or one whose ``submit()`` gives jobs with
            ``result()``, such as submitit's; ``None`` computes here, one task after another.
        progress
            Receives what happens. By default it is shown: as a bar with the time left in a notebook
            and on a terminal, as a line now and then in a log. False shows nothing.
        max_revisions
            At most so many Hub revisions that this run downloads lie on disk at once: the next is
            fetched while one is used, and deleted afterwards. Matrices that are read over all
            steps are kept in the folder. None keeps every revision in the cache.
        rereference
            A folder keeps the step that ``reference="last"`` (or ``"first"``) was when it was
            begun. True moves it to what is the last (or first) step now; all that is compared
            with it is computed again.
        keep_going
            Whether to go on where the dry run shows that an observable must fail, and to compute
            at every step what failed at two.

        Returns
        -------
        StudyResult
            The numbers of each observable by its name, as `open_study` opens them again; ``.tree``
            is the `xarray.DataTree` with all of them. Also on disk as ``result.zarr``; a run
            with nothing to do opens that.

        Raises
        ------
        ArgumentError
            If what each worker of this machine holds at once needs more memory than it has.
            Workers elsewhere are not counted. Or if an observable that has no cell yet refuses two
            checkpoints, and not `keep_going`.
        StoreError
            If the folder is not usable, a run with other settings is at work in it, or worker
            processes died; finished cells are kept.

        Warns
        -----
        StudyWarning
            Once, at the end, if anything failed; ``result.problems()`` lists it. Also if the
            reference is no longer the last (or first) step, or if cells of the result were
            computed in different environments.
        """
        path = Path(folder)
        reporter = chosen_progress(progress)
        with entered(path, rereference, self._frozen, self._identity) as settings:
            return self._run(
                path, settings, executor, reporter, max_revisions, keep_going
            )

    def hand_on(self) -> Handed:
        """Return what will hold what the next run reads for cells to come (see `begin`)."""
        self._handing = Handed()
        return self._handing

    def begin(self, folder: Path, computed: Path, handed: Handed | None = None) -> None:
        """Begin in a new folder with what another one holds of a study of the same texts.

        The next run takes what was `handed` on and is what it would read.

        What is not of this study is left out, and so is what has a state of several steps:
        of the steps of this study, `prepare` saw only those that were computed. Whoever proposed it
        has said what is odd with its texts.
        """
        self._is_proposed = True
        self._handed = handed
        nodes = {o.name: state_path(computed, state_node(o)) for o in self.observables}
        of_steps = [
            name for name, path in nodes.items() if path.is_file() and is_of_steps(path)
        ]
        left = {"study.json", *of_steps, *(nodes[name].name for name in of_steps)}
        with entered(folder, False, self._frozen, self._identity):
            for path in filter(Path.is_file, computed.rglob("*")):
                place = path.relative_to(computed)
                if left.isdisjoint(place.parts) and not any(
                    p[0] == "." for p in place.parts
                ):
                    with writing_whole(folder / place) as half:  # half a cell is none
                        shutil.copyfile(path, half)
        entries = self.parts(folder)[0].plan.entries
        for entry in entries:
            if entry.outcome == "stale":  # such as a cell that was timed without noise
                (folder / entry.cell.place).unlink(missing_ok=True)
        # A checkpoint that was timed may be none of this study.
        ours = {folder / entry.cell.place for entry in entries}
        for cell in set((folder / "cells").glob("*/*")) - ours:
            cell.unlink()

    def parts(self, folder: str | Path) -> list[RunPart]:
        """Return the run and its control runs, as they are read in a folder."""
        path = Path(folder)
        if not is_read_by_step(self.trajectory):
            hash_once(path, self.trajectory)
        frozen = frozen_settings(path)
        parts = self._parts(path, self.examination.of(path, keep=True))
        return parts.made(self._settings(frozen), frozen)

    def _run(
        self,
        path: Path,
        settings: Settings,
        executor: Submitting | None,
        progress: Progress,
        max_revisions: int | None,
        keep_going: bool,
    ) -> StudyResult:
        """Compute what is missing in a folder that this run has entered, and merge."""
        by_step = is_read_by_step(self.trajectory)
        if not by_step:
            hash_once(path, self.trajectory)
        bounded = max_revisions is not None
        audited = files_read(self.trajectory)
        examined = self.examination.of(path, keep=True, bounded=bounded)
        frozen = frozen_settings(path)
        of_study = self._parts(path, examined)
        if not keep_going:
            left_out = {f.node: f.why_left_out for f in examined.failures if f.left_out}
            of_study = replace(of_study, left_out=left_out)
        parts = of_study.made(settings, frozen)
        merging = Merging(path, parts, self._stated, audited, progress)
        if merging.is_finished:
            try:
                result = merging.opened()
                self._announce((), examined, frozen, progress)
                merging.say_nothing_to_do()
                return result
            except StoreError:  # of damage that its files' stamps do not show
                note_finished(path, "")
        for part in parts:
            part.job.folder.mkdir(parents=True, exist_ok=True)
        plan = sum_of_plans([part.plan for part in parts])
        save_digests(parts)
        _refuse(plan, examined, executor, keep_going)
        changes = [*plan.changes(), *changed_summaries(summaries_of(parts))]
        self._announce(changes, examined, frozen, progress)
        elsewhere = plan.elsewhere(environment(self.device))
        # Workers elsewhere are of another environment anyway.
        if workers_here(executor):
            for line in elsewhere:
                progress.note(line)
        try:
            exchange = Exchange(self._handed, self._handing)
            problems = compute(parts, executor, progress, max_revisions, exchange)
        finally:
            progress.finish()
            save_digests(parts)
            release_skeleton()
        if by_step:  # what workers have noted is not read again to audit it
            hash_once(path, self.trajectory)
        summarise(parts, progress.note)
        return merging.result(problems, elsewhere)

    def _announce(
        self,
        changes: Sequence[str],
        probe: Probe,
        frozen: Mapping[str, Any],
        progress: Progress,
    ) -> None:
        """Say what a run should be known for before it computes."""
        steps = [int(step) for step in self.trajectory.steps]
        if old := old_reference(self._reference, steps, frozen):
            say(old, *MOVE_IT)
        failing = doubts(probe.failures, len(self.observables))
        changed = [f"changed: {change}" for change in changes]
        notes = probe.fallback.notes
        texts = [] if self._is_proposed else odd_texts(self.inputs)  # it said so itself
        for line in [*texts, *notes, *failing, *changed]:
            progress.note(line)

    @property
    def _stated(self) -> Stated:
        return Stated(self.title, self._reference, self._left_out)

    def _parts(self, folder: Path | None, probe: Probe) -> Parts:
        return Parts(
            self.trajectory,
            self.inputs,
            self.observables,
            self._controls,
            probe,
            folder,
        )

    def _settings(self, frozen: Mapping[str, Any]) -> Settings:
        steps = [int(s) for s in self.trajectory.steps]
        same_noise = frozen.get("noise") == self._noise
        steps_before = frozen.get("noise_steps", ()) if same_noise else ()
        return Settings(
            reference_step=resolve_reference(self._reference, steps, frozen),
            noise_steps=noise_steps(steps, self._noise, steps_before),
            first_steps=first_steps(steps, frozen),
            **self._options,
        )

    def _identity(self, settings: Settings) -> dict[str, Any]:
        return identity(self.trajectory, self.inputs, self.observables, settings)

    def _frozen(self, frozen: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
        """Return the settings by what a folder has frozen, and what it keeps from now on."""
        settings = self._settings(frozen)
        steps = [int(s) for s in self.trajectory.steps]
        frozen_runs = frozen_steps(frozen, self._controls)
        controls = self._controls.runs(steps, settings.reference_step, frozen_runs)
        return settings, {
            "title": self.title,
            "reference": self._reference,
            "reference_step": settings.reference_step,
            "noise": self._noise,
            "noise_steps": list(settings.noise_steps),
            "steps": steps,
            "first_steps": list(settings.first_steps),
            "control_steps": self._controls.steps,
            "controls": [control.to_dict() for control in controls],
        }


def _memory_notes(plan: Plan) -> list[str]:
    """Return whether this machine has too little memory for one worker."""
    try:
        warning = plan.memory_warning(min(1, plan.checkpoints))
    except ArgumentError as error:
        return [f"too large: {error}"]
    return [f"perhaps too large: {warning}"] if warning else []


def _refuse(
    plan: Plan, probe: Probe, executor: Submitting | None, keep_going: bool
) -> None:
    """Raise what would make a run fail later."""
    if warning := plan.memory_warning(min(workers_here(executor), plan.checkpoints)):
        say(warning)
    if (refused := refusal(probe.failures)) and not keep_going:
        raise ArgumentError(refused)
