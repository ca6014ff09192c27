"""Is the order of the steps visible in a series? A permutation test.

If nothing developed, the values at the steps are one noise in any order. The statistic is the
mean squared difference between steps 1 to T/4 apart, each distance k weighted by 1/k: a von Neumann
ratio that looks further than to the next step. Smooth series, of whatever shape, make it small. The
variance does not change under permutation and need not be divided by.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import next_fast_len

from ..arrays import numbers
from ..errors import ArgumentError, NonFiniteError, check_number, check_whole

FEWEST_STEPS = 6
LARGEST_ENUMERATED = 8  # 8! = 40,320 orders
LONG = 128  # steps from which the spectrum is quicker than pairs
CHUNK = 2**22  # numbers of random orders held at a time
# Weights held at a time; more than fit into the cache take 3 times as long.
IN_CACHE = 2**16
TIE = 1e-9  # relative; sums of the same terms in another order must count as equal


def in_order(steps: int) -> float:
    """Return how likely noise alone rises, or falls, over all of so many steps.

    Examples
    --------
    >>> [round(in_order(steps), 3) for steps in (2, 3, 4, 6)]
    [1.0, 0.333, 0.083, 0.003]
    """
    return min(1.0, 2 / math.factorial(steps)) if steps < LONG else 0.0


def step_order_test(
    values: ArrayLike,
    n_draws: int = 9999,
    random_state: int = 0,
    level: float = 0.01,
    *,
    n_tests: int | None = None,
) -> np.ndarray:
    """Return p-values of "the values change smoothly with the step" against any order of steps.

    One-sided towards smooth series: trends, sigmoids, bumps, random walks. A series of independent
    noise has uniform p-values, whatever its distribution. Noise with memory is smooth as well: see
    `trend_test`. Up to 8 steps all orders are enumerated;
    beyond, random ones are drawn, more for those series that need them to stay below
    `level` after a correction for the number of tests (up to ``max(99_999, tests / level)``).

    Parameters
    ----------
    values
        Series (..., T); NaN marks a missing step and is left out.
    n_draws
        Random orders drawn for every series.
    random_state
        Seed of the orders; all series see the same ones.
    level
        Level with which the caller will compare the corrected p-values.
    n_tests
        Number of tests that the p-values will be corrected for; default: the series given.

    Returns
    -------
    numpy.ndarray
        Shape (...,), (1 + orders as smooth) / (1 + orders), or exact up to 8 steps; NaN for a
        series with fewer than 6 steps, 1 for a constant one.

    Raises
    ------
    ArgumentError
        If `values` has no step axis, or a number is out of range.
    NonFiniteError
        If a value is infinite.

    References
    ----------
    J. von Neumann, Ann. Math. Statist. 12, 1941; A. Wald, J. Wolfowitz, ibid. 14, 1943.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rise, noise = np.linspace(0, 1, 20), rng.normal(size=20)
    >>> p = step_order_test([rise + 0.2 * noise, noise])
    >>> bool(p[0] < 0.001), bool(p[1] > 0.05)
    (True, True)
    """
    series = numbers("values", values)
    if series.ndim == 0 or not series.shape[-1]:
        raise ArgumentError(
            f"values must have shape (..., steps); its shape is {series.shape}."
        )
    if np.isinf(series).any():
        raise NonFiniteError(
            f"values holds {np.sum(np.isinf(series))} infinite values."
        )
    check_whole("n_draws", n_draws)
    check_number("level", level, 0, 1, above=True, below=True)
    rows = series.reshape(-1, series.shape[-1])
    counts = np.count_nonzero(~np.isnan(rows), axis=1)
    p_values = np.full(len(rows), np.nan)
    testable = int(np.sum(counts >= FEWEST_STEPS))
    tests = testable if n_tests is None else check_whole("n_tests", n_tests)
    needed = draws_for(tests, n_draws, level)
    for count in np.unique(counts[counts >= FEWEST_STEPS]):
        same_count = np.flatnonzero(counts == count)
        group = rows[same_count]
        group = group[~np.isnan(group)].reshape(len(same_count), count)
        p_values[same_count] = _p_values(group, n_draws, needed, level, random_state)
    return p_values.reshape(series.shape[:-1])


def smallest_p(n_usable: ArrayLike, n_orders: int | None = None) -> np.ndarray:
    """Return the smallest p-value that the order of so many steps can have.

    Multiplied by the number of tests that are corrected together, it must not exceed the level.
    Otherwise the steps are too few for a verdict.

    Parameters
    ----------
    n_usable
        Number of usable steps, any shape.
    n_orders
        Random orders that are drawn beyond 8 steps; default: as many as the tests need.

    Returns
    -------
    numpy.ndarray
        The same shape: two of all orders (forwards and backwards) up to 8 steps, and beyond
        ``1 / (1 + n_orders)``, or 0 by default. NaN below 6 steps.

    Raises
    ------
    ArgumentError
        If a number is negative.

    Examples
    --------
    >>> 1 / smallest_p([5, 6, 7, 8])
    array([   nan,   360.,  2520., 20160.])
    >>> bool(
    ...     smallest_p(7) * 30 <= 0.01
    ... )  # seven checkpoints are too few for thirty rows
    False
    """
    counts = numbers("n_usable", n_usable)
    if np.any(counts < 0):
        raise ArgumentError(
            f"n_usable must not be negative; its minimum is {counts.min()}."
        )
    smallest_of_draws = (
        0.0 if n_orders is None else 1 / (1 + check_whole("n_orders", n_orders))
    )
    smallest = np.where(counts < FEWEST_STEPS, np.nan, smallest_of_draws)
    for count in range(FEWEST_STEPS, LARGEST_ENUMERATED + 1):
        smallest = np.where(counts == count, 2 / math.factorial(count), smallest)
    return smallest


def draws_for(tests: int, n_draws: int, level: float) -> int:
    """Return how many orders make the smallest corrected p-value comfortably less than level."""
    needed = tests / level
    return max(n_draws, math.ceil(needed), min(math.ceil(5 * needed), 99_999))


def _p_values(
    rows: np.ndarray, n_draws: int, needed: int, level: float, random_state: int
) -> np.ndarray:
    """Return the p-value of each of the complete series (n, T)."""
    count = rows.shape[1]
    spread = np.ptp(rows, axis=1, keepdims=True)
    rows = rows / np.where(spread > 0, spread, 1.0)
    if count <= LARGEST_ENUMERATED:
        orders = np.array(list(itertools.permutations(range(count))))
        return _as_smooth(iter([orders]), rows) / len(orders)
    rng = np.random.default_rng(random_state)
    smooth = 1 + _as_smooth(_random_orders(rng, n_draws, count), rows)
    counts = np.full(len(rows), 1 + n_draws)
    # A series that fails uncorrected cannot pass corrected: more draws go to the others only.
    promising = np.flatnonzero(smooth <= level * counts)
    if needed > n_draws and len(promising):
        more = _random_orders(rng, needed - n_draws, count)
        smooth[promising] += _as_smooth(more, rows[promising])
        counts[promising] = 1 + needed
    return smooth / counts


def _as_smooth(orders: Iterator[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Count for each series (n, T) the orders under which it is at least as smooth as it is."""
    count = rows.shape[1]
    roughness = (_by_spectrum if count > LONG else _by_pairs)(rows)
    observed = roughness(np.arange(count)[None])[0] * (1 + TIE)
    counts = np.zeros(len(rows), dtype=np.int64)
    width = max(
        1, IN_CACHE // (rows.size if count > LONG else count * (count - 1) // 2)
    )
    for batch in orders:
        for start in range(0, len(batch), width):
            counts += np.sum(
                roughness(batch[start : start + width]) <= observed, axis=0
            )
    return counts


def _random_orders(
    rng: np.random.Generator, total: int, count: int
) -> Iterator[np.ndarray]:
    size = max(1, CHUNK // (count * min(count, LONG)))
    for start in range(0, total, size):
        rows = min(size, total - start)
        yield rng.permuted(np.tile(np.arange(count, dtype=np.int32), (rows, 1)), axis=1)


def _by_pairs(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what gives the statistic (orders, n) where value a stands at orders[:, a]."""
    first, second, of_lag = _pairs(rows.shape[1])
    differences = (rows[:, first] - rows[:, second]).T ** 2
    return lambda at: (
        np.take(of_lag, np.abs(at[:, first] - at[:, second])) @ differences
    )


def _by_spectrum(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Do the same in T log T: weighted products of all pairs are a weighted sum of the spectrum.

    Of a run of 1,000 checkpoints pairs took minutes, 500,000 for each of 10,000 orders.
    """
    rows = rows - rows.mean(axis=1, keepdims=True)
    of_lag = _pairs(rows.shape[1])[2]
    # None wraps.
    sums = np.cumsum(of_lag)
    size = next_fast_len(len(of_lag) * 5 // 4, real=True)
    # Each distance stands for two, and each frequency but the first and a middle one.
    twice = np.where(2 * np.arange(size // 2 + 1) % size > 0, 4, 2)
    of_frequency = np.fft.rfft(of_lag, size).real * twice / size

    def statistic(orders: np.ndarray) -> np.ndarray:
        placed = np.empty((len(orders), *rows.shape))
        np.put_along_axis(placed, orders[:, None].astype(np.intp), rows[None], axis=2)
        power = np.abs(np.fft.rfft(placed, size)) ** 2
        return placed**2 @ (sums + sums[::-1]) - power @ of_frequency

    return statistic


@functools.cache
def _pairs(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both places (pairs,) of all pairs, and the weight (count,) of each distance."""
    lags = np.arange(1, max(1, count // 4) + 1)
    weights = np.zeros(count)
    weights[lags] = 1.0 / (lags * (count - lags))
    return *np.triu_indices(count, 1), weights
