"""Statistics over pairs of batches: few and noisy, so each comes with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ontogeny.arrays import Array, numpy_matrix
from ontogeny.errors import check_whole

FEWEST = 6
"""Pairs for a 95 % interval: of n, even the range misses the median with probability 2 / 2ⁿ."""


@dataclass(frozen=True)
class PairStatistics:
    """Median and 90 % point over pairs, each with its 95 % bootstrap interval (low, high)."""

    median: float
    median_interval: tuple[float, float]
    p90: float
    p90_interval: tuple[float, float]


def pair_statistics(
    values: Array, n_draws: int = 1000, random_state: int = 0
) -> PairStatistics:
    """Return median and 90 % point of a number measured on several pairs of batches.

    Intervals are percentile bootstraps over pairs, which must not share batches. No interval of
    fewer than 6 values holds the median 95 % of the time, whatever it is; that of one value is the
    value. With fewer than about 20 pairs the 90 % point lies between the two largest values, and
    its interval cannot reach beyond the largest.

    Parameters
    ----------
    values
        (pairs,) one number for each pair.
    n_draws
        Bootstrap samples, at least 1.
    random_state
        Their seed.

    Raises
    ------
    ArgumentError, NonFiniteError
        If `values` is not a vector of finite numbers, or `n_draws` is not positive.

    Examples
    --------
    >>> statistics = pair_statistics(np.arange(1.0, 10.0))
    >>> statistics.median, statistics.median_interval, round(statistics.p90, 6)
    (5.0, (2.0, 8.0), 8.2)
    """
    array = numpy_matrix("values", values, ndim=1)
    check_whole("n_draws", n_draws)
    check_whole("random_state", random_state, 0)
    rng = np.random.default_rng(random_state)
    resampled = array[rng.integers(len(array), size=(n_draws, len(array)))]
    medians, tails = np.quantile(resampled, [0.5, 0.9], axis=1)
    median, tail = np.quantile(array, [0.5, 0.9])
    return PairStatistics(
        float(median), _interval(medians), float(tail), _interval(tails)
    )


def _interval(draws: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
