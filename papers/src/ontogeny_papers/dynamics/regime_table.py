"""Two windows of training side by side: means, deviations, and their change over all layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ontogeny.errors import ArgumentError

Window = tuple[float, float]


def regime_table(
    scores: ArrayLike | xr.DataArray,
    steps: ArrayLike,
    early: Window = (20_000, 100_000),
    late: Window = (380_000, 460_000),
    layers: Sequence[str] | None = None,
) -> xr.Dataset:
    """Compare the scores of each layer in two windows of steps (Table 2 of the report).

    Parameters
    ----------
    scores
        (layer, step) values; NaN at steps that are missing.
    steps
        (step,) training steps.
    early, late
        First and last step of each window, both included; the defaults are the report's.
    layers
        Names of the layers; those of a DataArray, else 0, 1, ...

    Returns
    -------
    xarray.Dataset
        What `compare_regimes` gives, ``overall_mean`` and ``overall_sd`` over all steps, and
        ``early_steps`` and ``late_steps``, how many steps lie in each window (layer).

    Raises
    ------
    ArgumentError
        If shapes disagree, or a window holds fewer than two steps of a layer.

    Examples
    --------
    >>> steps = np.arange(0, 100, 10)
    >>> table = regime_table(steps[None] / 100.0, steps, early=(0, 40), late=(50, 90))
    >>> round(float(table.sum_difference), 6)
    0.5
    """
    if layers is None and isinstance(scores, xr.DataArray) and "layer" in scores.coords:
        layers = [str(layer) for layer in scores.layer.values]
        scores = scores.transpose("layer", "step")
    values = np.asarray(scores, dtype=float)
    steps = np.asarray(steps)
    if values.ndim != 2 or steps.shape != (values.shape[1],):
        raise ArgumentError(
            "scores must be (layer, step) with one entry of steps each; their shapes are "
            f"{values.shape} and {steps.shape}."
        )
    names = [str(i) for i in range(len(values))] if layers is None else list(layers)
    parts = {
        "early": _within("early", values, steps, early),
        "late": _within("late", values, steps, late),
        "overall": values,
    }
    mean = {name: np.nanmean(part, axis=1) for name, part in parts.items()}
    sd = {name: np.nanstd(part, axis=1, ddof=1) for name, part in parts.items()}
    table = compare_regimes(mean["early"], sd["early"], mean["late"], sd["late"], names)
    counts = {name: np.isfinite(parts[name]).sum(axis=1) for name in ("early", "late")}
    table = table.assign(
        overall_mean=("layer", mean["overall"]),
        overall_sd=("layer", sd["overall"]),
        early_steps=("layer", counts["early"]),
        late_steps=("layer", counts["late"]),
    )
    return table.assign_attrs(early=list(early), late=list(late))


def compare_regimes(
    early_mean: ArrayLike,
    early_sd: ArrayLike,
    late_mean: ArrayLike,
    late_sd: ArrayLike,
    layers: Sequence[str] | None = None,
) -> xr.Dataset:
    """Return the change of each layer between two regimes, and its sums over layers.

    ``difference`` is late minus early; ``standardised`` divides it by
    ``sqrt(early_sd^2 + late_sd^2)``; ``sum_difference`` and ``sigma_aware_sum`` add them up over
    layers, ``improving`` counts the layers that rise (Table 2 of the report and its caption). The
    sums weigh layers, not steps: neighbouring steps are no independent draws, so neither sum is a
    test.

    Raises
    ------
    ArgumentError
        If shapes disagree, a deviation is negative, or both deviations of a layer are zero while
        its means differ.

    Examples
    --------
    >>> table = compare_regimes([0.5, 0.4], [0.3, 0.0], [0.6, 0.4], [0.4, 0.0])
    >>> round(float(table.sum_difference), 6), round(float(table.sigma_aware_sum), 6)
    (0.1, 0.2)
    """
    names = ("early_mean", "early_sd", "late_mean", "late_sd")
    moments = (early_mean, early_sd, late_mean, late_sd)
    arrays = {
        n: np.asarray(v, dtype=float) for n, v in zip(names, moments, strict=True)
    }
    shapes = {a.shape for a in arrays.values()}
    if len(shapes) > 1 or arrays["early_mean"].ndim != 1:
        raise ArgumentError(
            f"means and deviations must be one per layer; got shapes {shapes}."
        )
    for name in ("early_sd", "late_sd"):
        if (arrays[name] < 0).any():
            raise ArgumentError(
                f"{name} must not be negative; got {arrays[name].min()}."
            )
    difference = arrays["late_mean"] - arrays["early_mean"]
    spread = np.hypot(arrays["early_sd"], arrays["late_sd"])
    labels = (
        [str(i) for i in range(len(difference))] if layers is None else list(layers)
    )
    fixed = (spread == 0) & (difference != 0)
    if fixed.any():
        which = ", ".join(str(labels[i]) for i in np.flatnonzero(fixed))
        raise ArgumentError(
            f"the change of {which} has no scale: both deviations are zero and the means differ."
        )
    standardised = np.where(
        spread > 0, difference / np.where(spread > 0, spread, 1), difference
    )
    return xr.Dataset(
        {
            **{name: ("layer", array) for name, array in arrays.items()},
            "difference": ("layer", difference),
            "standardised": ("layer", standardised),
            "sum_difference": difference.sum(),
            "sigma_aware_sum": standardised.sum(),
            "improving": int((difference > 0).sum()),
        },
        coords={"layer": labels},
    )


def _within(
    name: str, values: np.ndarray, steps: np.ndarray, window: Window
) -> np.ndarray:
    inside = values[:, (steps >= window[0]) & (steps <= window[1])]
    fewest = int(np.isfinite(inside).sum(axis=1).min(initial=inside.shape[1]))
    if fewest < 2:
        raise ArgumentError(
            f"{name}={tuple(window)} holds {fewest} steps of a layer; a deviation needs two. "
            f"Steps go from {steps.min()} to {steps.max()}."
        )
    return inside
