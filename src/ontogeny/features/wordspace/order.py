"""When each concept is learned, and whether larger singular values come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from ...arrays import matrix, to_numpy
from ...errors import ArgumentError, check_flag, check_whole


@dataclass(frozen=True)
class LearningOrder:
    """What `learning_order` found.

    Parameters
    ----------
    spearman
        Rank correlation of the singular values with minus the learning steps: 1 if larger ones
        are always learned first; NaN if all steps, or all singular values, are equal.
    p_value
        Share of random orders of the steps that reach it, one-sided.
    learned
        Concepts that were learned at all.
    concepts
        Concepts compared; the others count as learned last.
    """

    spearman: float
    p_value: float
    learned: int
    concepts: int


def first_crossing(
    steps: ArrayLike, values: ArrayLike, level: ArrayLike, *, lasting: bool = False
) -> np.ndarray:
    """Return where series first reach a level from below, interpolated between their steps.

    Parameters
    ----------
    steps
        Steps or times (T,), increasing.
    values
        Series (..., T); NaN where a step is missing.
    level
        Level, a number or (...,).
    lasting
        Whether the series must stay there: what is reached and lost again does not count.

    Returns
    -------
    numpy.ndarray
        (...,): the step, linearly interpolated; the first known step where a series starts at its
        level or above, NaN where the level is never reached.

    Raises
    ------
    ArgumentError
        If shapes do not fit or `steps` do not increase.

    Examples
    --------
    >>> first_crossing([0, 10, 20], [[0.0, 1.0, 2.0], [0.0, 0.1, 0.2]], 0.5)
    array([ 5., nan])
    >>> first_crossing([0, 10, 20, 30], [0.0, 1.0, 0.0, 1.0], 0.5, lasting=True)
    array(25.)
    """
    times = np.asarray(matrix("steps", steps, ndim=1), dtype=np.float64)
    check_flag("lasting", lasting)
    series = _numbers("values", values)
    if series.ndim < 1 or series.shape[-1] != len(times):
        raise ArgumentError(
            f"values must end in one value for each of {len(times)} steps; "
            f"their shape is {series.shape}."
        )
    if (np.diff(times) <= 0).any():
        raise ArgumentError("steps must increase.")
    at = _numbers("level", level)
    try:
        levels = np.broadcast_to(at, series.shape[:-1])
    except ValueError:
        raise ArgumentError(
            f"level has shape {at.shape}, which does not fit series of shape {series.shape}."
        ) from None
    if lasting:  # the smallest value from here on, gaps left out
        series = np.fmin.accumulate(series[..., ::-1], axis=-1)[..., ::-1]
    rows = series.reshape(-1, len(times))
    found = [_crossing(times, row, at) for row, at in zip(rows, levels.ravel(), strict=True)]
    return np.array(found, dtype=np.float64).reshape(series.shape[:-1])


def _numbers(name: str, value: ArrayLike) -> np.ndarray:
    """Return any numbers, NaN among them where something is not known."""
    return to_numpy(matrix(name, value, ndim=None, finite=False)).astype(np.float64)


def _crossing(times: np.ndarray, row: np.ndarray, level: float) -> float:
    known = np.flatnonzero(np.isfinite(row))
    reached = known[row[known] >= level]
    if not len(reached):
        return np.nan
    here = reached[0]
    before = known[known < here]
    if not len(before):
        return float(times[here])
    last = before[-1]
    share = (level - row[last]) / (row[here] - row[last])
    return float(times[last] + share * (times[here] - times[last]))


def learning_order(
    sigma: ArrayLike,
    learned_at: ArrayLike,
    *,
    n_draws: int = 9999,
    random_state: int = 0,
) -> LearningOrder:
    """Test whether concepts with larger singular values are learned earlier.

    Parameters
    ----------
    sigma
        Singular values (r,), at least 3.
    learned_at
        Step at which each concept is learned (r,), NaN where it never is: those count as learned
        last, all at once.
    n_draws, random_state
        Random orders for the p-value, and their seed.

    Raises
    ------
    ArgumentError
        If the lengths differ, or there are fewer than 3 concepts.

    Notes
    -----
    Spearman's rank correlation with mid-ranks for ties. The concepts' curves are coupled, so the
    p-value says that the order is not arbitrary, not how many concepts support it; compare with
    the same number on a corpus with shuffled next words.

    Examples
    --------
    >>> learning_order([3.0, 2.0, 1.0, 0.5], [10, 20, 40, np.nan]).spearman
    1.0
    """
    values = np.asarray(matrix("sigma", sigma, ndim=1), dtype=np.float64)
    steps = _numbers("learned_at", learned_at)
    if steps.shape != values.shape:
        raise ArgumentError(
            f"learned_at must have one step for each of {len(values)} singular values; "
            f"its shape is {steps.shape}."
        )
    if len(values) < 3:
        raise ArgumentError(f"a rank correlation needs at least 3 concepts; got {len(values)}.")
    check_whole("n_draws", n_draws)
    check_whole("random_state", random_state, 0)
    learned = np.isfinite(steps)
    early = _standard(rankdata(-np.where(learned, steps, np.inf)))
    large = _standard(rankdata(values))
    if early is None or large is None:
        return LearningOrder(np.nan, np.nan, int(learned.sum()), len(values))
    spearman = float(large @ early)
    rng = np.random.default_rng(random_state)
    draws = rng.permuted(np.tile(early, (n_draws, 1)), axis=1) @ large
    reached = int((draws >= spearman - 1e-12).sum())
    p_value = (1 + reached) / (1 + n_draws)
    # Products of ranks that are exactly equal may come out as 1 + 2e-16.
    return LearningOrder(
        float(np.clip(round(spearman, 12), -1, 1)), p_value, int(learned.sum()), len(values)
    )


def _standard(ranks: np.ndarray) -> Any:
    centred = ranks - ranks.mean()
    norm = np.linalg.norm(centred)
    return None if norm == 0 else centred / norm
