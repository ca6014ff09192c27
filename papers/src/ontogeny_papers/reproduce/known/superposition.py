"""Superposition in toy models: how many features, in which geometry (Elhage et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ...observables.superposition import FeatureGeometry
from ..evidence import LEVEL, Found, each, if_finite, joined, listed, more_often
from ..verdicts import Verdict
from .known_recipe import KnownRecipe, KnownSize
from .superposition_run import SuperpositionRun

_FIVE, _TWO = "five features, two dimensions", "two features, one dimension"
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


def judge_of(five: SuperpositionRun, two: SuperpositionRun) -> Callable[[Found], list[Verdict]]:
    """Return the judge of two runs, whose names say sparsity and importance."""

    def judge(results: Found) -> list[Verdict]:
        nodes = results["feature-geometry"]
        return [*_geometry(nodes[_FIVE], five), *_phase_diagram(nodes[_TWO], two)]

    return judge


def _layer(name: str) -> str:
    return f"maps.{name}.weight"


def _geometry(runs: Sequence[xr.Dataset], run: SuperpositionRun) -> list[Verdict]:
    """Judge number and dimensions of features at each sparsity, by the median over seeds."""
    rows = []
    for (sparsity, _), name in zip(run.grid, run.names, strict=True):
        count, published = _PUBLISHED[sparsity]
        ones = [node.sel(layer=_layer(name)) for node in runs]
        last = [one.isel(step=-1) for one in ones]
        represented = each(last, lambda one: one.represented)
        dimensions = each(last, lambda one: one.dimensionality)
        close, controls = _close(last, published), _close(last, published, "_control")
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


def _close(last: Sequence[xr.Dataset], published: float, end: str = "") -> float:
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
        return float("nan")
    return float(one.step.values[other[-1] + 1 if len(other) else 0])


def _phase_diagram(runs: Sequence[xr.Dataset], run: SuperpositionRun) -> list[Verdict]:
    """Judge whether trained models are in the phase of the smallest error, in every cell."""
    expected = np.array([best_phase(sparsity, q) for sparsity, q in run.grid])
    layers = [_layer(name) for name in run.names]
    last = [node.sel(layer=layers).isel(step=-1) for node in runs]
    phases = [_phases(one.feature_norm.transpose("layer", "feature").values) for one in last]
    turned = np.concatenate(
        [
            _phases(norms)
            for one in last
            for norms in one.feature_norm_control.transpose("run", "layer", "feature").values
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
