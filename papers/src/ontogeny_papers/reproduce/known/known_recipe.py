"""A recipe on something that is known to develop: trained, studied beside turned controls."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from ontogeny.inputs import Inputs
from ontogeny.observables import Observable
from ontogeny.training.loop import Progress
from ontogeny.trajectory import Trajectory

from ..recipe import Materials
from ..trained_recipe import TrainedRecipe
from ..training import OptimizerSettings, train_seeds


class KnownRun(abc.ABC):
    """One training in which it is known what develops; subclasses are frozen dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    steps: int
    optimizer: OptimizerSettings

    @abc.abstractmethod
    def model(self) -> nn.Module:
        """Return the untrained model, from PyTorch's random state."""

    @abc.abstractmethod
    def batches(self, seed: int) -> Callable[[int], Any]:
        """Return a function of the update, counted from 0, that returns its batch."""

    @abc.abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Return the scalar loss of a batch."""

    @abc.abstractmethod
    def inputs(self) -> dict[str, Inputs]:
        """Return the input sets of the study."""

    def record(
        self,
        folder: str | PathLike[str],
        seeds: Sequence[int],
        every: int | Sequence[int],
        progress: Progress | None = None,
    ) -> list[Path]:
        """Train once for each seed and record the checkpoints, as `train_seeds`."""
        return train_seeds(
            folder,
            lambda seed: self.model(),
            self.batches,
            self.loss,
            self.steps,
            seeds=seeds,
            optimizer=self.optimizer,
            every=every,
            settings={"run": asdict(self)},
            progress=progress,
        )

    def opened(self, folder: Path) -> Trajectory:
        """Return a recorded trajectory."""
        return Trajectory.from_folder(folder)


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
        self,
        run: KnownRun,
        trajectory: Trajectory,
        size: KnownSize,
        materials: Materials,
    ) -> dict[str, Inputs]:
        """Return the input sets of the run."""
        return run.inputs()
