"""What every known development is trained on: one small run, a model for each seed."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import Field, asdict
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from ontogeny.training.loop import Progress
from ontogeny.trajectory import Trajectory

from ..training import OptimizerSettings, train_seeds


class SeededRun(abc.ABC):
    """One setting of a training; subclasses are data classes that hold it."""

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
