"""How alike the order in which rows changed is between runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from ..claims import Claim, Subject, measurement

MIN_ROWS = 4  # fewer rows have no rank correlation worth a number


def claims_of_orders(rows: xr.Dataset) -> Iterator[Claim]:
    """Give the mean correlation over pairs of runs, with its range, where that can be told."""
    pairs = correlations(rows)
    if not pairs:
        return
    values = [value for _, value in pairs]
    is_range = len(pairs) > 1
    yield measurement(
        Subject("runs", "half_step"),
        float(np.mean(values)),
        whole=min(count for count, _ in pairs),
        low=min(values) if is_range else math.nan,
        high=max(values) if is_range else math.nan,
    )


def correlations(rows: xr.Dataset) -> list[tuple[int, float]]:
    """Return for each pair of runs its rows, and Spearman's correlation of half-change steps.

    Rows count that changed in both runs; a pair with fewer than `MIN_ROWS` of them has none.

    Examples
    --------
    >>> half = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 40.0], [4.0, 30.0]])
    >>> rows = xr.Dataset({"half_step": (("row", "run"), half)})
    >>> [
    ...     (n, round(r, 2))
    ...     for n, r in correlations(rows.assign(changed=rows.half_step > 0))
    ... ]
    [(4, 0.8)]
    """
    half = rows["half_step"].where(rows["changed"]).transpose("row", "run").values
    pairs = []
    for a, b in itertools.combinations(half.T, 2):
        both = np.isfinite(a) & np.isfinite(b)
        if both.sum() >= MIN_ROWS and np.ptp(a[both]) and np.ptp(b[both]):
            pairs.append(
                (int(both.sum()), float(spearmanr(a[both], b[both]).statistic))
            )
    return pairs
