"""Superposition in toy models: how many features, in which geometry (Elhage et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ontogeny.inputs import Inputs
from ontogeny.trajectory import Trajectory

from ...observables.superposition import FeatureGeometry
from ..formats import joined, listed
from ..training import OptimizerSettings
from ..verdicts import LEVEL, Found, Runs, Verdict, each, if_finite, more_often
from .known_recipe import KnownRecipe, KnownRun, KnownSize

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
        self.maps = nn.ModuleDict(
            {name: nn.Linear(features, hidden, bias=False) for name in names}
        )
        self.bias = nn.Parameter(torch.zeros(len(names), features))
        for layer in self.maps.values():
            nn.init.xavier_normal_(layer.get_parameter("weight"))

    def forward(self, x: Tensor) -> Tensor:
        """Return what every model makes of its features, (models, texts, n) of as many."""
        W = torch.stack([cast(nn.Linear, layer).weight for layer in self.maps.values()])
        hidden = torch.einsum("kbn,kmn->kbm", x, W)
        return (torch.einsum("kbm,kmn->kbn", hidden, W) + self.bias[:, None]).relu()


@dataclass(frozen=True)
class SuperpositionRun(KnownRun):
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

    @property
    def grid(self) -> tuple[tuple[float, float], ...]:
        """Sparsity and importance of every model."""
        return tuple((s, q) for s in self.sparsities for q in self.importances)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every model."""
        return tuple(
            f"zero_{round(100 * s):02d}_importance_{round(100 * q):03d}"
            for s, q in self.grid
        )

    def model(self) -> ToyModels:
        """Return untrained models, from PyTorch's random state."""
        return ToyModels(self.names, self.features, self.hidden)

    def batches(self, seed: int) -> Callable[[int], Tensor]:
        """Return a function of the update that returns its features (models, examples, n)."""
        sparsity = torch.tensor([s for s, _ in self.grid], dtype=torch.float32)[
            :, None, None
        ]
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


_FIVE = "five features, two dimensions"
_TWO = "two features, one dimension"
_PUBLISHED = {0.0: (2, 1.0), 0.8: (4, 0.5), 0.9: (5, 0.4)}
"""By the share of zeros: how many features there are, and the dimensions of each."""
_WITHIN = 0.05
_REPRESENTED = 0.5
_PHASES = ("the first alone", "the second alone", "both, opposite")


def best_phase(sparsity: float, importance: float) -> int:
    """Return which of three solutions of two features in one dimension has the smallest error.

    0: the first feature alone; 1: the second alone; 2: both in opposite directions. A feature that
    is left out is predicted by its mean. Of opposite ones each is hidden by the other where both
    are there. Elhage et al. 2022, section "Superposition as a phase change".

    Parameters
    ----------
    sparsity
        Probability that a feature is 0; else it is uniform from 0 to 1.
    importance
        Weight of the second feature's squared error; that of the first is 1.

    Examples
    --------
    >>> best_phase(0.0, 0.5), best_phase(0.0, 2.0), best_phase(0.9, 1.0)
    (0, 1, 2)
    """
    there = 1 - sparsity
    left_out = there / 3 - there**2 / 4  # variance of a feature
    both = (1 + importance) * there**2 / 6  # E min(x, y)² = 1/6
    return int(np.argmin([importance * left_out, left_out, both]))


def judge_of(
    five: SuperpositionRun, two: SuperpositionRun
) -> Callable[[Found], list[Verdict]]:
    """Return the judge of two runs, whose names say sparsity and importance."""

    def judge(results: Found) -> list[Verdict]:
        nodes = results["feature-geometry"]
        return [*_geometry(nodes[_FIVE], five), *_phase_diagram(nodes[_TWO], two)]

    return judge


def _layer(name: str) -> str:
    return f"maps.{name}.weight"


def _geometry(runs: Runs, run: SuperpositionRun) -> list[Verdict]:
    """Judge number and dimensions of features at each sparsity, by the median over seeds."""
    rows = []
    for (sparsity, _), name in zip(run.grid, run.names, strict=True):
        count, published = _PUBLISHED[sparsity]
        ones = [node.sel(layer=_layer(name)) for node in runs]
        last = [one.isel(step=-1) for one in ones]
        represented = each(last, lambda one: one.represented)
        dimensions = each(last, lambda one: one.dimensionality)
        close = _close(last, published)
        controls = _close(last, published, "_control")
        since = [_since(one, count) for one in ones]
        right = abs(np.median(dimensions) - published) <= _WITHIN
        rows.append(
            Verdict(
                f"{sparsity:.0%} zeros: {count} features with {published:g} of a dimension each",
                if_finite(right and np.median(represented) == count, dimensions),
                f"features {joined(represented, 0)}; dimensions of each {joined(dimensions)}; "
                f"as many since step {listed(since)}",
                f"within {_WITHIN:g} of {published:g}: {close:.0%} of the features, in turned runs "
                f"{controls:.0%}; the median over seeds counts",
            )
        )
    return rows


def _close(last: Runs, published: float, end: str = "") -> float:
    """Return the share of represented features whose dimensions are as published."""
    of_feature = [one[f"feature_dimensionality{end}"].values.ravel() for one in last]
    norms = [one[f"feature_norm{end}"].values.ravel() for one in last]
    there = np.concatenate(norms) >= _REPRESENTED
    close = np.abs(np.concatenate(of_feature) - published) <= _WITHIN
    return float(close[there].mean()) if there.any() else 0.0


def _since(one: xr.Dataset, count: int) -> float:
    """Return the step since which so many features are represented, NaN if not in the end."""
    other = np.flatnonzero(one.represented.values != count)
    if len(other) and other[-1] == one.sizes["step"] - 1:
        return np.nan
    return float(one.step.values[other[-1] + 1 if len(other) else 0])


def _phase_diagram(runs: Runs, run: SuperpositionRun) -> list[Verdict]:
    """Judge whether trained models are in the phase of the smallest error, in every cell."""
    expected = np.array([best_phase(sparsity, q) for sparsity, q in run.grid])
    layers = [_layer(name) for name in run.names]
    last = [node.sel(layer=layers).isel(step=-1) for node in runs]
    phases = [
        _phases(one.feature_norm.transpose("layer", "feature").values) for one in last
    ]
    turned = np.concatenate(
        [
            _phases(norms)
            for one in last
            for norms in one.feature_norm_control.transpose(
                "run", "layer", "feature"
            ).values
        ]
    )
    agree = np.concatenate([phase == expected for phase in phases])
    commonest = float(np.bincount(expected).max() / len(expected))
    more, p = more_often(int(agree.sum()), len(agree), commonest)
    counts = ", ".join(
        f"{name} {np.mean(agree.reshape(len(runs), -1)[:, expected == i]):.0%}"
        for i, name in enumerate(_PHASES)
        if (expected == i).any()
    )
    control = float(np.mean(turned == np.tile(expected, len(turned) // len(expected))))
    return [
        Verdict(
            "which of two features are represented follows the phase diagram",
            bool(more),
            f"{agree.mean():.0%} of {len(agree)} models are where the error is smallest; by "
            f"phase: {counts}",
            f"the commonest phase everywhere {commonest:.0%} (p = {p:.2g}, {LEVEL:g} counts); "
            f"turned runs {control:.0%}",
        )
    ]


def _phases(norms: np.ndarray) -> np.ndarray:
    """Return the phase of every model from the norms (models, 2) of its features; 3: neither."""
    first, second = (norms >= _REPRESENTED).T
    return np.select([first & second, first, second], [2, 0, 1], 3)


def _runs(five: SuperpositionRun, two: SuperpositionRun) -> dict[str, SuperpositionRun]:
    return {_FIVE: five, _TWO: two}


_OBSERVABLES = (FeatureGeometry("maps.*.weight", least=_REPRESENTED),)
_FIVE_RUN = SuperpositionRun()
_TWO_RUN = SuperpositionRun(
    features=2,
    hidden=1,
    sparsities=(0.0, 0.3, 0.6, 0.8, 0.9),
    importances=(0.3, 0.6, 0.9, 1.2, 2.0),
    steps=1000,
)
_FULL_TWO = replace(_TWO_RUN, steps=4000, batch_size=1024)
_FULL_FIVE = replace(_FIVE_RUN, steps=8000, batch_size=1024)
RECIPE = KnownRecipe(
    "known-superposition",
    "Features in superposition",
    "the sparser features are, the more of them a small space holds: five features in two "
    "dimensions have 1, 1/2 and 2/5 of a dimension each, and two in one follow a phase diagram.",
    "Elhage et al. 2022, Toy models of superposition, introduction and sections on phase change "
    "and feature dimensionality",
    KnownSize(_runs(_FULL_FIVE, _FULL_TWO), tuple(range(10)), 200, _OBSERVABLES),
    KnownSize(_runs(_FIVE_RUN, _TWO_RUN), (0, 1, 2, 3, 4), 100, _OBSERVABLES, 11),
    "the plateaus of hundreds of features; some seeds stay in other arrangements.",
    judge=judge_of(_FIVE_RUN, _TWO_RUN),
)
"""The case as a recipe."""
