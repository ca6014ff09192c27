"""What there is to do: the tasks of a run, as plain picklable values, and what each reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from ..capture import WeightBlock
from ..inputs import Inputs
from ..needs import Reference
from ..observables import Observable
from ..trajectory import Trajectory
from .settings import Settings

__all__ = ["BlockTask", "Done", "Job", "SeriesTask", "StateTask", "StepTask", "Task"]


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
    blocks: Mapping[str, WeightBlock]
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


Task: TypeAlias = StateTask | StepTask | BlockTask | SeriesTask


@dataclass
class Done:
    """What a task reports: cells by outcome, and reasons."""

    label: str
    seconds: float = 0.0
    done: int = 0
    found: int = 0
    """Cells that another process has finished since the task was planned."""
    taken_by: str = ""
    """Who else is at the task: nothing was done of it then."""
    problems: list[str] = field(default_factory=list)
    blocked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many cells of a node fail for what failed before them, by node and reason."""
