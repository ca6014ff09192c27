"""Where the noise level of series changes: cost of segments, search, gains over no change.

A segment with n residuals costs n log(mean |residual|) for each series (the likelihood of Laplace
noise, so that single outliers do not decide); the noise levels of several series change together
or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .trends import NEIGHBOURS, neighbour_residuals

# Residuals below this share of the largest value are rounding.
ROUNDING = 1e-7
FEWEST = 5  # residuals in a regime


@dataclass(frozen=True, eq=False)
class Panel:
    """Which steps each of K series has, and the residuals that follow from any values there.

    Parameters
    ----------
    shape
        (T, K).
    groups
        For each pattern of gaps: its columns, its rows and the matrix of residuals.
    """

    shape: tuple[int, int]
    groups: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, steps: np.ndarray, values: np.ndarray) -> Panel:
        """Return the panel of values (T, K) with NaN at missing steps."""
        there = ~np.isnan(values)
        patterns, which = np.unique(there, axis=1, return_inverse=True)
        groups = []
        for i, pattern in enumerate(patterns.T):
            rows = np.flatnonzero(pattern)
            if len(rows) > NEIGHBOURS:
                columns = np.flatnonzero(which.ravel() == i)
                groups.append((columns, rows, neighbour_residuals(steps[rows])))
        return cls(values.shape, groups)

    def residuals(self, values: np.ndarray) -> np.ndarray:
        """Return residuals (..., T, K) of values (..., T, K); NaN at gaps and at the ends."""
        result = np.full(values.shape, np.nan)
        half = NEIGHBOURS // 2
        for columns, rows, matrix in self.groups:
            residuals = np.einsum(
                "ij,...jk->...ik", matrix, values[..., rows[:, None], columns]
            )
            result[..., rows[half:-half, None], columns] = residuals
        return result


def segment_costs(
    residuals: np.ndarray, floor: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> np.ndarray:
    """Return the costs (..., n) of the n segments [start, stop) of residuals (..., T, K).

    NaN is left out. `floor` (K,) is the smallest mean that counts, so that zeros cost something.
    """
    costs = np.zeros((*residuals.shape[:-2], len(starts)))
    for k, smallest in enumerate(floor):  # one series at a time: memory
        size = np.abs(residuals[..., k])
        there = ~np.isnan(size)
        sums = _sums(np.where(there, size, 0.0), starts, stops)
        counts = _sums(there.astype(float), starts, stops)
        costs += counts * np.log(np.maximum(sums / np.maximum(counts, 1), smallest))
    return costs


def single_boundary(
    residuals: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how much the best single boundary saves, and its place, both (...,)."""
    end = residuals.shape[-2]
    places = np.arange(FEWEST, end - FEWEST + 1)
    start = np.zeros_like(places)
    stop = np.full_like(places, end)
    cut = segment_costs(residuals, floor, start, places)
    cut = cut + segment_costs(residuals, floor, places, stop)
    whole = segment_costs(residuals, floor, start[:1], stop[:1])[..., 0]
    return whole - cut.min(axis=-1), places[cut.argmin(axis=-1)]


def double_boundary(residuals: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Return how much the best two boundaries save, (...,); -inf where they do not fit."""
    end = residuals.shape[-2]
    first, second = np.triu_indices(end + 1, FEWEST)
    inside = (first >= FEWEST) & (second <= end - FEWEST)
    first = first[inside]
    second = second[inside]
    if not len(first):
        return np.full(residuals.shape[:-2], -np.inf)
    ends = np.arange(end + 1)
    before = segment_costs(residuals, floor, np.zeros_like(ends), ends)
    after = segment_costs(residuals, floor, ends, np.full_like(ends, end))
    middle = segment_costs(residuals, floor, first, second)
    cut = before[..., first] + middle + after[..., second]
    return before[..., end] - cut.min(axis=-1)


def best_boundaries(
    residuals: np.ndarray, floor: np.ndarray, count: int
) -> tuple[int, ...]:
    """Return the `count` places that cut residuals (T, K) into the cheapest segments.

    Exact dynamic programming by `ruptures` (C. Truong, L. Oudre, N. Vayatis, Signal Processing
    167, 2020).
    """
    from ruptures.base import BaseCost
    from ruptures.detection import Dynp

    end = len(residuals)
    costs = np.zeros((end + 1, end + 1))
    starts, stops = np.triu_indices(end + 1, 1)
    costs[starts, stops] = segment_costs(residuals, floor, starts, stops)

    class Stored(BaseCost):
        """Costs that are known for every segment."""

        model = "stored"
        min_size = 1

        def fit(self, signal: Any) -> Stored:
            self.signal = signal
            return self

        def error(self, start: int, end: int) -> float:
            return float(costs[start, end])

    search = Dynp(custom_cost=Stored(), min_size=FEWEST, jump=1)
    places = search.fit(residuals).predict(n_bkps=count)
    search.seg.cache_clear()  # a cache of the class, not of the object
    return tuple(int(place) for place in places[:-1])


def _sums(values: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return the sums over [start, stop) of values (..., T), which are not negative."""
    sums = np.concatenate(
        [np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1
    )
    return np.maximum(sums[..., stops] - sums[..., starts], 0.0)
