"""Shares of examples that are right, with intervals, and from when on they are above chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...dynamics import holm
from ...dynamics.order import in_order
from ...dynamics.shares import wilson_interval
from ...observables.crossing import crossing, leads_from
from ...tails import t_above, t_limit
from .contrasts import Ties
from .exact_tests import exchange_law, guess_law, p_above

Z = 1.959964
LEVEL = 0.05
_MOST = 0.75  # of the examples, which noise between checkpoints seldom moves one way
_BLOCKS = 400  # of a large group, which are resampled instead of its examples


@dataclass(frozen=True, eq=False)
class Chance:
    """How likely the examples of a group are right where nothing was learned.

    Parameters
    ----------
    of_example
        (n,) the probability of each to be right by chance.
    ties
        Which of them go together.
    of_words
        Whether a liking for words decides, whose luck the words of each contrast share; else
        guesses.
    """

    of_example: np.ndarray
    ties: Ties
    of_words: bool = False

    def p_value(self, right: np.ndarray) -> float:
        """Return how likely as many right ones of (n,) are; NaN where that is not known."""
        if len(right) < 2 or not np.isfinite(right).all():
            return math.nan
        if self.of_words:
            return p_above(np.sign(right - 0.5), self.ties)
        return float(min(1.0, self._guesses[_whole(right.sum()) :].sum()))

    def reach(self, right: np.ndarray) -> float:
        """Return the largest share of (n,) that more than 5 % of such chance reaches.

        A group is above chance by itself if more is right: test and reach say the same. NaN where
        `p_value` is.

        Examples
        --------
        >>> alone = Chance(np.full(20, 0.5), Ties.of_clusters(np.arange(20)))
        >>> (
        ...     alone.reach(np.ones(20)),
        ...     round(alone.p_value(np.repeat([1, 0], [14, 6])), 3),
        ... )
        (0.7, 0.058)
        """
        if not math.isfinite(self.p_value(right)):
            return math.nan
        law = self._guesses
        if self.of_words:
            law = exchange_law(np.sign(right - 0.5), self.ties)
        reached = np.flatnonzero(np.cumsum(law[::-1])[::-1] > LEVEL).max()
        # Votes for and against are twice as many as examples, and ties count for half of one.
        if self.of_words:
            return float(0.5 + (reached - len(law) // 2) / (2 * len(right)))
        # What half-right ties add to whole examples, the test leaves out of both.
        total = right.sum()
        return float((reached + total - _whole(total)) / len(right))

    @property
    def smallest_p(self) -> float:
        """The p-value of a group in which all are right."""
        number = len(self.of_example)
        if self.of_words:
            return float(exchange_law(np.ones(number), self.ties)[-1])
        return float(self._guesses[-1])

    @cached_property
    def _guesses(self) -> np.ndarray:
        return guess_law(self.of_example, self.ties.cluster)


def _whole(total: float) -> int:
    """Return how many whole examples are right, of a sum with parts of others."""
    return math.floor(total + 1e-9)


@dataclass(frozen=True)
class GroupCourse:
    """How one group of examples develops: arrays over the steps, and numbers.

    Parameters
    ----------
    low, high
        (T,) 95 % interval of the share that is right, over clusters; NaN of one cluster.
    floor
        (T,) noise of its change since the first step on these examples.
    p_values
        (T,) against chance, uncorrected.
    above_from
        Step from which on it is above chance with any such choice of examples, and by the test of
        each step, corrected over groups; infinite if not.
    above_from_low
        Step before which it is not.
    """

    low: np.ndarray
    high: np.ndarray
    floor: np.ndarray
    p_values: np.ndarray
    above_from: float
    above_from_low: float

    @property
    def p_ends(self) -> tuple[float, float]:
        """The p-values of the first and the last step that were measured; NaN where none was."""
        known = self.p_values[np.isfinite(self.p_values)]
        return (
            (float(known[0]), float(known[-1])) if len(known) else (math.nan, math.nan)
        )


def course_of(
    steps: np.ndarray, right: np.ndarray, chance: Chance, groups: int = 1
) -> GroupCourse:
    """Return the course of a group.

    Parameters
    ----------
    steps
        (T,) training steps.
    right
        (T, n) 1 where an example is right, 0 where not, .5 of a tie; NaN at steps that are missing.
    chance
        How likely the examples are right where nothing was learned.
    groups
        How many groups are asked, over which the step is corrected.

    Examples
    --------
    >>> right = np.array([[0, 1] * 20, [1] * 40])
    >>> alone = Chance(np.full(40, 0.5), Ties.of_clusters(np.arange(40)))
    >>> course = course_of(np.array([0, 9]), right, alone)
    >>> course.low.round(2), course.high.round(2), course.above_from
    (array([0.35, 0.91]), array([0.65, 1.  ]), 9.0)
    """
    low, high = share_interval(right, chance.ties)
    cross = crossing(
        steps, *_blocks(1.0 - right, 1.0 - chance.of_example, chance.ties.units)
    )
    p_values = np.array([chance.p_value(row) for row in right])
    # The sample that is luckiest among many groups would otherwise seem to leave chance first.
    sure = np.where(np.isfinite(p_values), p_values * groups <= LEVEL / 2, np.nan)
    since = float(np.nan_to_num(leads_from(steps, sure)[0], nan=np.inf))
    return GroupCourse(
        low,
        high,
        change_floor(right - first_known(right)),
        p_values,
        max(cross.high, since),
        cross.low,
    )


def first_known(right: np.ndarray) -> np.ndarray:
    """Return (1, n) what was right at the first step that was measured."""
    is_finite = np.isfinite(right).all(axis=1)
    return right[is_finite][:1] if is_finite.any() else right[:1]


def share_interval(right: np.ndarray, ties: Ties) -> tuple[np.ndarray, np.ndarray]:
    """Return (T,) ends of the 95 % interval of the share of (T, n) that is right, over clusters.

    Wilson's interval of as many examples as clusters are worth by their spread, stretched by
    Student's t. Where clusters are fewer than examples, one that is all right and one that is all
    wrong are added to the spread: three clusters that are alike are no sign that all are. NaN of
    one cluster, which has no spread.

    Examples
    --------
    >>> three = Ties.of_clusters(np.repeat(np.arange(3), 10))
    >>> [end.round(2).tolist() for end in share_interval(np.ones((1, 30)), three)]
    [[0.18], [1.0]]
    """
    mean = right.mean(axis=1)
    sizes = ties.sizes
    if len(sizes) < 2:
        return np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    if ties.is_alone:
        count = _worth(right)
    else:
        typical = (sizes**2).sum() / sizes.sum()
        sums = np.column_stack(
            [_sums(right, ties), np.full(len(mean), typical), 0 * mean]
        )
        weights = np.append(sizes, [typical, typical])
        middle = sums.sum(axis=1) / weights.sum()
        spread = ((sums - middle[:, None] * weights) ** 2).sum(
            axis=1
        ) / weights.sum() ** 2
        variance = len(weights) / (len(weights) - 1) * spread
        freedom = sizes.sum() / typical - 1
        stretch = (Z / t_limit(0.025, freedom)) ** 2 if freedom > 0.01 else 1e-9
        count = stretch * np.minimum(middle * (1 - middle) / variance, right.shape[1])
    return wilson_interval(mean * count, count)


def change_interval(change: np.ndarray, ties: Ties) -> tuple[float, float]:
    """Return the 95 % interval of the mean of changes (n,), each -1 to 1, over clusters."""
    if ties.is_alone and len(change) > 1:
        mean = change.mean()
        half = float(change_floor(change[None])[0])
        return max(mean - half, -1.0), min(mean + half, 1.0)
    low, high = share_interval((change[None] + 1) / 2, ties)
    return float(2 * low[0] - 1), float(2 * high[0] - 1)


def _worth(right: np.ndarray) -> np.ndarray:
    """Return (T,) how many examples independent ones (T, n) are worth."""
    number = right.shape[1]
    mean = right.mean(axis=1)
    alone = mean * (1 - mean) / number
    deviation = right - mean[:, None]
    together = number / (number - 1) * (deviation**2).sum(axis=1) / number**2
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = np.where(alone > 0, together / alone, 1.0)
    return np.asarray(number / np.clip(effect, 1.0, number))


def _sums(values: np.ndarray, ties: Ties) -> np.ndarray:
    """Return (T, clusters) the sums of values (T, n) over each cluster."""
    _, place = np.unique(ties.cluster, return_inverse=True)
    return np.stack([np.bincount(place, row, len(ties.sizes)) for row in values])


def change_floor(change: np.ndarray) -> np.ndarray:
    """Return (T,) the noise of a change (T, n): binomial of those that turned, at least one."""
    number = change.shape[1]
    # Half an example each way: without it a group in which all turn alike would have no noise.
    spread = (change**2).sum(axis=1) + 1.0 - change.sum(axis=1) ** 2 / number
    return Z * np.sqrt(spread / number**2)


def p_turned(change: np.ndarray) -> float:
    """Return the p-value of no change on these examples (n,): McNemar's exact test.

    Examples
    --------
    >>> p_turned(np.array([1, 1, 1, 1, 0, 0]))
    0.125
    """
    from scipy.stats import binom

    if not np.isfinite(change).all() or len(change) < 2:
        return math.nan
    up, down = (int(np.sum(side)) for side in (change > 0, change < 0))
    return float(min(1.0, 2 * binom.cdf(min(up, down), up + down, 0.5)))


def p_wandering(right: np.ndarray) -> float:
    """Return how likely a course (T, n) that only wanders ends so far from its first value.

    What goes against the change from first to last is noise between checkpoints, and noise goes
    along with it as often. Where nothing went back, that is as likely as noise alone comes in
    order: three checkpoints do in a third of all runs. Only a change of most examples is more than
    noise between few checkpoints.

    Examples
    --------
    >>> half = np.array([[0] * 8, [0, 1] * 4, [0] * 8, [0, 1] * 4])
    >>> p_wandering(half) > 0.3, round(p_wandering(np.sort(half, axis=0)), 3)
    (True, 0.083)
    """
    totals = right[np.isfinite(right).all(axis=1)].sum(axis=1)
    moves = np.diff(totals)
    change = moves.sum()
    back = np.minimum(moves * np.sign(change), 0.0)
    noise = math.sqrt(2 * (back**2).sum())
    if change == 0:
        return 1.0
    of_noise = float(2 * t_above(abs(change) / noise, len(moves))) if noise > 0 else 0.0
    is_most = abs(change) >= _MOST * right.shape[1]
    return of_noise if is_most else max(of_noise, in_order(len(totals)))


def above_chance(p_values: np.ndarray) -> np.ndarray:
    """Return which groups are above chance at 5 % over all of them, by Holm's method.

    Examples
    --------
    >>> above_chance(np.array([0.001, 0.03, 0.04]))
    array([ True, False, False])
    """
    return holm(p_values) <= LEVEL


def _blocks(
    losses: np.ndarray, line: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return units of examples, or means of blocks of many, with the line and weights."""
    place = units % _BLOCKS
    weights = np.bincount(place)
    means = np.stack([np.bincount(place, row) / weights for row in losses])
    return means, np.bincount(place, line) / weights, weights.astype(float)
