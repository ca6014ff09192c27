"""Whether two curves of a run go together more than those of two runs that share nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

HIGH = 0.8
"""Correlation that counts as high, as in the report."""
Correlate = Callable[[np.ndarray, np.ndarray], float]


def agreement(
    first: Sequence[xr.DataArray], second: Sequence[xr.DataArray], correlate: Correlate
) -> np.ndarray:
    """Return the mean |r| over layers of each seed's two curves with each other, (seeds,).

    Parameters
    ----------
    first, second
        Curves (step, layer) of each seed; steps that either lacks are left out.
    correlate
        From two series to r.

    Examples
    --------
    >>> curve = xr.DataArray([[3.0], [2.0], [0.0]], dims=("step", "layer"))
    >>> agreement([curve], [2 - curve], lambda x, y: np.corrcoef(x, y)[0, 1]).round(3)
    array([1.])
    """
    return np.array(
        [_mean(x, y, correlate) for x, y in zip(first, second, strict=True)]
    )


def of_other_seeds(
    first: Sequence[xr.DataArray], second: Sequence[xr.DataArray], correlate: Correlate
) -> np.ndarray:
    """Return |r| of one seed's curve with another seed's, (pairs,); empty where there is one seed.

    Both decay and were never in one run: what they share is that they decay.
    """
    pairs = [(i, j) for i in range(len(first)) for j in range(len(second)) if i != j]
    return np.array([_mean(first[i], second[j], correlate) for i, j in pairs])


def _mean(x: xr.DataArray, y: xr.DataArray, correlate: Correlate) -> float:
    x, y = xr.align(x, y, join="inner")
    correlations = []
    for layer in range(x.sizes["layer"]):
        one, other = (
            np.asarray(v.isel(layer=layer).values, dtype=float) for v in (x, y)
        )
        there = np.isfinite(one) & np.isfinite(other)
        varies = there.sum() > 2 and np.ptp(one[there]) > 0 and np.ptp(other[there]) > 0
        correlations.append(
            abs(correlate(one[there], other[there])) if varies else np.nan
        )
    return float(np.mean(correlations))


def in_common(values: np.ndarray, other: np.ndarray) -> tuple[bool | None, bool, str]:
    """Return whether |r| is high, whether other seeds' is too, and what is said of the latter.

    Parameters
    ----------
    values
        Of each seed, (seeds,) or (seeds, curves).
    other
        Of curves of different seeds, of any shape; empty where there is one seed.
    """
    is_finite = other.size > 0 and bool(np.isfinite(other).all())
    words = (
        f"one seed's curve with another seed's: {other.mean():.2f}, {other.max():.2f} at most"
        if is_finite
        else "one run alone has no other seed beside it"
    )
    if not np.isfinite(values).all():
        return None, False, words
    if (values >= HIGH).all():
        apart = is_finite and other.mean() < HIGH and other.max() < values.min()
        return (True if is_finite else None), not apart, words
    low = (values < HIGH).any(axis=tuple(range(1, values.ndim))).all()
    return (False if low else None), False, words
