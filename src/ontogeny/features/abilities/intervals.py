"""Shares of examples that are right, with intervals, and from when on they are above chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...dynamics import holm
from ...dynamics.shares import wilson_interval
from ...observables.crossing import crossing, leads_from

Z = 1.959964
LEVEL = 0.05
_BLOCKS = 400  # of a large group, which are resampled instead of its examples


@dataclass(frozen=True)
class GroupCourse:
    """How one group of examples develops: arrays over the steps, and numbers.

    Parameters
    ----------
    low, high
        (T,) 95 % interval of the share that is right.
    floor
        (T,) noise of its change since the first step, paired over examples.
    p_value
        Of the last step, against chance, uncorrected.
    above_from
        Step from which on it is above chance with any such choice of examples, and by the test of
        each step, corrected over groups; infinite if not.
    above_from_low
        Step before which it is not.
    """

    low: np.ndarray
    high: np.ndarray
    floor: np.ndarray
    p_value: float
    above_from: float
    above_from_low: float


def course_of(
    steps: np.ndarray, right: np.ndarray, contrast: np.ndarray, chance: np.ndarray, groups: int = 1
) -> GroupCourse:
    """Return the course of a group.

    Examples that set the same words against each other are not independent: a model that likes one
    of the words better is right or wrong in all of them. They count as so many as their spread
    shows (Kish's design effect).

    Parameters
    ----------
    steps
        (T,) training steps.
    right
        (T, n) 1 where an example is right, 0 where not, .5 of a tie; NaN at steps that are missing.
    contrast
        (n,) which words are set against which.
    chance
        (n,) the probability of each example to be right by chance.
    groups
        How many groups are asked, over which the step is corrected.

    Examples
    --------
    >>> right = np.array([[0, 1] * 20, [1] * 40])
    >>> course = course_of(np.array([0, 9]), right, np.arange(40), np.full(40, 0.5))
    >>> course.low.round(2), course.high.round(2), course.above_from
    (array([0.35, 0.91]), array([0.65, 1.  ]), 9.0)
    """
    mean, count = right.mean(axis=1), effective_count(right, contrast)
    low, high = wilson_interval(mean * count, count)
    is_finite = np.isfinite(mean)
    first = right[is_finite][:1] if is_finite.any() else right[:1]
    blocks = _blocks(1.0 - right, 1.0 - chance)
    cross = crossing(steps, *blocks)
    p_values = np.array([chance_p_value(row, contrast, float(chance.mean())) for row in right])
    # The sample that is luckiest among many groups would otherwise seem to leave chance first.
    sure = np.where(is_finite, p_values * groups <= LEVEL / 2, np.nan)
    since = float(np.nan_to_num(leads_from(steps, sure)[0], nan=np.inf))
    p_value = float(p_values[is_finite][-1]) if is_finite.any() else float("nan")
    floor = change_floor(right - first, contrast)
    return GroupCourse(low, high, floor, p_value, max(cross.high, since), cross.low)


def effective_count(right: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """Return (T,) how many independent examples those of a group are worth.

    Examples
    --------
    >>> likes_one_word = np.array([[1, 1, 1, 1, 0, 0, 0, 0]])
    >>> effective_count(likes_one_word, np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    array([1.])
    """
    number, mean = right.shape[1], right.mean(axis=1)
    alone = mean * (1 - mean) / number
    together = _clustered_variance(right, contrast)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = np.where(alone > 0, together / alone, 1.0)
    return number / np.clip(effect, 1.0, number)


def _clustered_variance(values: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """Return (T,) the variance of the mean (n,) where examples of one contrast go together."""
    names, place = np.unique(contrast, return_inverse=True)
    if len(names) < 2:
        return np.zeros(len(values))
    deviation = values - values.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(place, row, len(names)) for row in deviation])
    return len(names) / (len(names) - 1) * (sums**2).sum(axis=1) / values.shape[1] ** 2


def change_floor(change: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """Return (T,) the noise of a change (T, n): binomial of those that turned, at least one."""
    number = change.shape[1]
    # Half an example each way: without it a group in which all turn alike would have no noise.
    spread = (change**2).sum(axis=1) + 1.0 - change.sum(axis=1) ** 2 / number
    variance = np.maximum(spread / number**2, _clustered_variance(change, contrast))
    return Z * np.sqrt(variance)


def chance_p_value(right: np.ndarray, contrast: np.ndarray, chance: float) -> float:
    """Return how likely chance gives as many right ones of (n,), by the binomial distribution.

    NaN of one example alone, which shows nothing.
    """
    from scipy.stats import binom

    share, count = right.mean(), effective_count(right[None], contrast)[0]
    if not np.isfinite(share) or len(right) < 2:
        return float("nan")
    number = int(np.floor(count))
    return float(binom.sf(int(np.floor(share * number + 1e-9)) - 1, number, chance))


def change_p_value(change: np.ndarray, contrast: np.ndarray) -> float:
    """Return the p-value of no change (n,), by the sign test of the examples that turned.

    Examples that set the same words against each other count as so many as their spread shows.

    Examples
    --------
    >>> change_p_value(np.array([1, 1, 1, 1, 0, 0]), np.arange(6))
    0.125
    """
    from scipy.stats import binom

    if not np.isfinite(change).all() or len(change) < 2:
        return float("nan")
    up, down = change[change > 0].sum(), -change[change < 0].sum()
    alone = change.var() / max(len(change) - 1, 1)
    together = _clustered_variance(change[None], contrast)[0]
    effect = max(1.0, together / alone) if alone > 0 else 1.0
    number, fewer = (up + down) / effect, min(up, down) / effect
    return float(min(1.0, 2 * binom.cdf(np.ceil(fewer - 1e-9), np.floor(number + 1e-9), 0.5)))


def above_chance(p_values: np.ndarray) -> np.ndarray:
    """Return which groups are above chance at 5 % over all of them, by Holm's method.

    Examples
    --------
    >>> above_chance(np.array([0.001, 0.03, 0.04]))
    array([ True, False, False])
    """
    return holm(p_values) <= LEVEL


def _blocks(losses: np.ndarray, line: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return examples, or means of blocks of many, with the line and weights."""
    number = losses.shape[1]
    if number <= _BLOCKS:
        return losses, line, np.ones(number)
    place = np.arange(number) % _BLOCKS
    weights = np.bincount(place)
    means = np.stack([np.bincount(place, row) / weights for row in losses])
    return means, np.bincount(place, line) / weights, weights.astype(float)
