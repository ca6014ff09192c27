"""How a curve of each layer gets from its first to its last value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ..verdicts import Found, Runs, each


def the_runs(results: Found, name: str) -> Runs:
    """Return the seeds of a node where nothing is compared."""
    return next(iter(results[name].values()))


def path_lengths(curves: Sequence[xr.DataArray], since: float = 0.0) -> np.ndarray:
    """Return how long the path of each seed is for its net change, median over layers, (seeds,).

    1 for a curve that only falls or only rises. A layer that ends where it began has none.

    Parameters
    ----------
    curves
        One for each seed, over ``step`` and at most ``layer``; steps without a value are left out.
    since
        Share of the training after which it is looked at.

    Examples
    --------
    >>> curve = xr.DataArray([3.0, 1.0, 2.0, 1.0], {"step": [0, 1, 2, 3]})
    >>> path_lengths([curve])
    array([2.])
    """
    return each(curves, lambda curve: _path_length(curve, since))


def _path_length(curve: xr.DataArray, since: float) -> float:
    late = curve.sel(step=curve.step >= since * float(curve.step[-1])).dropna("step")
    if late.sizes["step"] < 2:
        return np.nan
    table = late.transpose("step", ...).values.reshape(late.sizes["step"], -1)
    net = np.abs(table[-1] - table[0])
    total = np.abs(np.diff(table, axis=0)).sum(axis=0)
    moved = net > 0
    return float(np.median(total[moved] / net[moved])) if moved.any() else np.nan


def done_by(curves: Sequence[xr.DataArray], share: float) -> np.ndarray:
    """Return how much of its change each seed has behind it after a share of the training.

    Medians over layers, (seeds,); values between steps by interpolation.

    Examples
    --------
    >>> curve = xr.DataArray([4.0, 3.0, 2.0], {"step": [0, 1, 2]})
    >>> done_by([curve], 0.25)
    array([0.25])
    """
    return each(curves, lambda curve: _done(curve.dropna("step"), share))


def _done(curve: xr.DataArray, share: float) -> float:
    if curve.sizes["step"] < 2:
        return np.nan
    at = curve.interp(step=share * float(curve.step[-1]))
    first = curve.isel(step=0)
    last = curve.isel(step=-1)
    moved = first != last
    if not moved.any():
        return np.nan
    return float(((first - at) / (first - last).where(moved)).median())
