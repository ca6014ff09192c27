"""A recipe on something that is known to develop: trained, studied beside turned controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Protocol

from ontogeny.inputs import Inputs
from ontogeny.observables import Observable
from ontogeny.training.loop import Progress
from ontogeny.trajectory import Trajectory

from ..recipe import Materials
from ..trained_recipe import TrainedRecipe


class KnownRun(Protocol):
    """The settings of one training in which it is known what develops; a frozen dataclass."""

    def record(
        self,
        folder: str | PathLike[str],
        seeds: Sequence[int],
        every: int | Sequence[int],
        progress: Progress | None,
    ) -> list[Path]:
        """Train once for each seed; return the folders of the trajectories."""

    def opened(self, folder: Path) -> Trajectory:
        """Return a recorded trajectory."""

    def inputs(self) -> dict[str, Inputs]:
        """Return the input sets of the study."""


@dataclass(frozen=True)
class KnownSize:
    """How large a case is.

    Parameters
    ----------
    runs
        What is trained, by the label of the comparison; one without a comparison.
    seeds
        Seeds of each.
    every
        Steps between recorded checkpoints, or the steps themselves.
    observables
        What is observed.
    checkpoints
        How many of the recorded checkpoints are studied; None: all.
    """

    runs: Mapping[str, KnownRun]
    seeds: tuple[int, ...]
    every: int | tuple[int, ...]
    observables: tuple[Observable, ...]
    checkpoints: int | None = None


@dataclass(frozen=True)
class KnownRecipe(TrainedRecipe):
    """A case of the literature, studied beside three turned control runs of each seed.

    Sizes are of `KnownSize`. A turned control moves as far as the run at every step, in other
    directions (`Trajectory.control`), so that nothing forms in it.

    Examples
    --------
    >>> from ontogeny import reproduce
    >>> reproduce.recipe("known-induction-heads").controls
    3
    """

    controls: int = 3

    def record(
        self, run: KnownRun, folder: Path, size: KnownSize, materials: Materials
    ) -> list[Path]:
        """Train a run once for each seed."""
        return run.record(folder, size.seeds, size.every, materials.training)

    def opened(self, run: KnownRun, folder: Path) -> Trajectory:
        """Return a recorded trajectory."""
        return run.opened(folder)

    def inputs(
        self, run: KnownRun, trajectory: Trajectory, size: KnownSize, materials: Materials
    ) -> dict[str, Inputs]:
        """Return the input sets of the run."""
        return run.inputs()
