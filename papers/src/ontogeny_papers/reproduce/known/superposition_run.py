"""Toy models of superposition: sparse features through a space that is too small for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.errors import ArgumentError, check_whole
from ontogeny.inputs import Inputs
from ontogeny.trajectory import Trajectory

from ..training import OptimizerSettings
from .seeded_run import SeededRun

_TRAINING = 0x746F7973


class ToyModels(nn.Module):
    """Many models x' = ReLU(Wᵀ W x + b) side by side, one for each name.

    Parameters
    ----------
    names
        Of the models.
    features, hidden
        Sizes n and m of every W (m, n).

    Examples
    --------
    >>> ToyModels(["dense"], 5, 2)(torch.zeros(1, 3, 5)).shape
    torch.Size([1, 3, 5])
    """

    def __init__(self, names: Sequence[str], features: int, hidden: int) -> None:
        super().__init__()
        self.maps = nn.ModuleDict({name: nn.Linear(features, hidden, bias=False) for name in names})
        self.bias = nn.Parameter(torch.zeros(len(names), features))
        for layer in self.maps.values():
            nn.init.xavier_normal_(layer.get_parameter("weight"))

    def forward(self, x: Tensor) -> Tensor:
        """Return what every model makes of its features, (models, texts, n) of as many."""
        W = torch.stack([cast(nn.Linear, layer).weight for layer in self.maps.values()])
        hidden = torch.einsum("kbn,kmn->kbm", x, W)
        return (torch.einsum("kbm,kmn->kbn", hidden, W) + self.bias[:, None]).relu()


@dataclass(frozen=True)
class SuperpositionRun(SeededRun):
    """Toy models of several sparsities and importances, trained together.

    A feature is 0 with probability `sparsity` and else uniform from 0 to 1. Feature i has the
    importance qⁱ in the squared error.

    Parameters
    ----------
    features, hidden
        Sizes n and m.
    sparsities, importances
        Probabilities of 0, and factors q. There is one model for each pair of them.
    steps, batch_size
        Updates, and examples of each.
    optimizer
        `OptimizerSettings`. The high rate leaves arrangements that are minima only locally.

    Raises
    ------
    ArgumentError
        If a size or a probability is out of range.

    Examples
    --------
    >>> SuperpositionRun(sparsities=(0.0, 0.8), importances=(0.9,)).names
    ('zero_00_importance_090', 'zero_80_importance_090')
    """

    features: int = 5
    hidden: int = 2
    sparsities: tuple[float, ...] = (0.0, 0.8, 0.9)
    importances: tuple[float, ...] = (0.9,)
    steps: int = 2000
    batch_size: int = 128
    optimizer: OptimizerSettings = field(
        default_factory=lambda: OptimizerSettings(learning_rate=3e-2, weight_decay=0.0)
    )

    def __post_init__(self) -> None:
        for name in ("features", "hidden", "steps", "batch_size"):
            check_whole(name, getattr(self, name))
        if not all(0 <= sparsity < 1 for sparsity in self.sparsities):
            raise ArgumentError(f"sparsities must lie in [0, 1); got {self.sparsities}.")
        if not all(importance > 0 for importance in self.importances):
            raise ArgumentError(f"importances must be positive; got {self.importances}.")
        if len(set(self.names)) < len(self.names) or not self.names:
            raise ArgumentError("sparsities and importances must differ by a hundredth.")

    @property
    def grid(self) -> tuple[tuple[float, float], ...]:
        """Sparsity and importance of every model."""
        return tuple((s, q) for s in self.sparsities for q in self.importances)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every model."""
        return tuple(
            f"zero_{round(100 * s):02d}_importance_{round(100 * q):03d}" for s, q in self.grid
        )

    def model(self) -> ToyModels:
        """Return untrained models, from PyTorch's random state."""
        return ToyModels(self.names, self.features, self.hidden)

    def batches(self, seed: int) -> Callable[[int], Tensor]:
        """Return a function of the update that returns its features (models, examples, n)."""
        sparsity = torch.tensor([s for s, _ in self.grid], dtype=torch.float32)[:, None, None]
        shape = (len(self.grid), self.batch_size, self.features)

        def batch(step: int) -> Tensor:
            words = np.random.SeedSequence([_TRAINING, seed, step]).generate_state(1)
            generator = torch.Generator().manual_seed(int(words[0]))
            values, there = (torch.rand(shape, generator=generator) for _ in range(2))
            return values * (there >= sparsity)

        return batch

    def loss(self, model: nn.Module, x: Tensor) -> Tensor:
        """Return the sum over models of the mean error weighted by importance."""
        factors = torch.tensor([q for _, q in self.grid], dtype=x.dtype)
        weights = factors[:, None] ** torch.arange(self.features)
        return ((x - model(x)).square().mean(1) * weights).mean(1).sum()

    def opened(self, folder: Path) -> Trajectory:
        """Return a recorded trajectory."""
        return Trajectory.from_folder(
            folder, model=partial(ToyModels, self.names, self.features, self.hidden)
        )

    def inputs(self) -> dict[str, Inputs]:
        """Return a text that nothing reads: these models have no tokens."""
        return {"none": Inputs.from_tokens([[0]])}
