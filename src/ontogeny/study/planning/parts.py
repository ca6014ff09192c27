"""The run that is studied and its control runs, each with its cells and what is to do of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import activity
from ...errors import CheckpointError
from ...inputs import Inputs
from ...observables import Observable
from ...trajectory import Trajectory
from ...trajectory.skeleton import Identity
from ..cells.ahead import new_token
from ..cells.cache import DigestCache
from ..cells.graph import StateCell, observed_steps
from ..cells.in_hand import is_read_by_step
from ..cells.models import Job
from ..folder.controls import ControlRun, Controls, observed_of_controls
from ..folder.frozen import frozen_steps
from ..folder.layout import digests_path, run_folder
from ..folder.settings import Settings
from .build import Graph
from .cost import Prices
from .plan import Plan, make_plan
from .probe import Probe


@dataclass(frozen=True)
class RunPart:
    """One run of a study, the one that is studied or a control, with what is to do of it.

    Attributes
    ----------
    folder
        Where its cells lie; None where nothing is there yet.
    """

    name: str
    job: Job
    graph: Graph
    folder: Path | None
    control: ControlRun | None = None

    @cached_property
    def plan(self) -> Plan:
        """What is to do of it, by the cells that its folder holds when it is first asked."""
        graph = self.graph
        folder = self.folder
        activity.now(
            f"planning {f'control run {self.name}' if self.name else 'the run'}"
        )
        plan = make_plan(
            graph.cells(), folder, graph.trajectory, graph.digests, graph.name
        )
        others = []
        for entry in plan.prepared:
            if entry.to_do and isinstance(entry.cell, StateCell):
                needs = entry.cell.needs(graph.by_name)
                steps_read = _others_read(entry.cell, folder, graph)
                others += [(s, needs) for s in steps_read if s != self.begins_at]
        prices = Prices(
            graph.probe, graph.inputs, graph.by_name, graph.settings, plan.steps
        )
        to_do = [entry.cell for entry in [*plan.prepared, *plan.entries] if entry.to_do]
        read = [
            cell for cell in to_do if not (cell.observed and cell.key == self.begins_at)
        ]
        costs = prices.of(read, others, folder)
        costs.dropped_bytes = costs.reference_bytes * self.drops_references
        return replace(plan, device=graph.settings.device, **vars(costs))

    @property
    def trajectory(self) -> Trajectory:
        """The checkpoints."""
        return self.graph.trajectory

    @property
    def begins_at(self) -> int | None:
        """The step at which a control that is made of the run takes what that has read, if any."""
        is_made = self.control is not None and self.control.given is None
        return int(self.trajectory.steps[0]) if is_made else None

    @property
    def drops_references(self) -> bool:
        """Whether its references go when the study is finished: it is made of weights at hand.

        Steps of controls that are made are frozen, so nothing reads them again, or else they are
        computed again. Checkpoints of the studied run and of given ones are still to come.
        """
        reference = self.trajectory[self.job.settings.reference_step]
        return self.begins_at is not None and all(
            c.source is None for c in reference.sources
        )


@dataclass(frozen=True)
class Parts:
    """Makes the parts of a study in one folder; None stands for a folder that is not there yet.

    Parameters
    ----------
    trajectory, inputs, observables, controls
        Of the study.
    probe
        What is known of the model.
    folder
        Of the study.
    compared
        Whether cells may be there, to be compared with what would be computed.
    left_out
        Why observables are not computed, by node.
    """

    trajectory: Trajectory
    inputs: Mapping[str, Inputs]
    observables: Sequence[Observable]
    controls: Controls
    probe: Probe
    folder: Path | None
    compared: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_step(self) -> bool:
        """Whether the run is read one checkpoint after the other, and hashed when it is read."""
        return is_read_by_step(self.trajectory)

    def made(self, settings: Settings, frozen: Mapping[str, Any]) -> list[RunPart]:
        """Return the run that is studied, which comes first, and its control runs."""
        token = new_token()
        settings = self.probe.resolved(settings)
        steps = [int(s) for s in self.trajectory.steps]
        table = frozen_steps(frozen, self.controls)
        controls = self.controls.runs(steps, settings.reference_step, table)
        studied = self._part("", self.trajectory, settings, token)
        return [
            studied,
            *(self._of_control(control, settings, token) for control in controls),
        ]

    def _of_control(
        self, control: ControlRun, settings: Settings, token: str
    ) -> RunPart:
        reference = settings.reference_step
        # A run that is given as a control may lack the step that the study refers to.
        reference = reference if reference in control.steps else control.steps[-1]
        run_settings = replace(settings, noise_steps=(), reference_step=reference)
        # Checkpoints made of the run's own fit into the same module.
        shared = token if control.given is None else new_token()
        return self._part(
            control.name, control.of(self.trajectory), run_settings, shared, control
        )

    def _part(
        self,
        name: str,
        trajectory: Trajectory,
        settings: Settings,
        token: str,
        control: ControlRun | None = None,
    ) -> RunPart:
        folder = self.folder
        if folder is not None and name:
            folder = run_folder(folder, name)
        observables = (
            observed_of_controls(self.observables) if name else tuple(self.observables)
        )
        digests = DigestCache(
            None if self.folder is None else digests_path(self.folder),
            self.compared,
            in_hand=self.by_step,
        )
        graph = Graph(
            trajectory, self.inputs, observables, settings, self.probe, digests, name
        )
        where = Path() if folder is None else folder.resolve()
        first = _first(trajectory)
        studied = self.folder.resolve() if self.folder is not None and name else None
        job = Job(
            token=token,
            folder=where,
            observables=observables,
            inputs=self.inputs,
            settings=settings,
            first=first,
            studied=studied,
            model_class=self.probe.model_class,
            by_step=self.by_step,
            left_out=self.left_out,
        )
        return RunPart(name, job, graph, folder, control)


def _first(trajectory: Trajectory) -> Identity | None:
    """Return what the first checkpoint that can be read is; None where none can, and of one alone.

    One alone is compared with no other, and of a GGUF file the shapes took 17 s: it is converted.
    """
    if len(trajectory) == 1:
        return None
    for checkpoint in trajectory:
        with suppress(CheckpointError):
            return Identity.of(checkpoint)
    return None


def _others_read(cell: StateCell, folder: Path | None, graph: Graph) -> list[int]:
    """Return which steps beside the reference are read for a state, as far as is known."""
    others = [step for step in graph.steps if step != graph.settings.reference_step]
    if graph.by_name[cell.node].prepares_over_steps:
        return others
    observed = {} if folder is None else observed_steps(folder / cell.place)
    return [step for step in others if str(step) in observed.get("other_weights", ())]
