"""Exact tests of groups of examples: against chance, and of a change between two states.

A model that learned nothing may still like some words better than others. Such a liking is the same
in all examples of a contrast, whichever of its words is right. So two things are exchangeable: the
choices within a contrast, and the two words of a whole cluster. The tests compare the sum of the
examples with that of all such exchanges, by convolution and without draws.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from .contrasts import Ties

Counts = tuple[tuple[int, int, int, int], ...]
"""Of each contrast of a cluster: examples, those of one side, votes for and against its word."""


def exchange_law(votes: np.ndarray, ties: Ties) -> np.ndarray:
    """Return how likely each sum of votes is under all exchanges, from the least to the largest.

    Parameters
    ----------
    votes
        (n,) 1 of an example that is right, or that turned to right; -1 of the contrary; 0 of a tie,
        or where nothing turned.
    ties
        Which examples go together.

    Returns
    -------
    numpy.ndarray
        (2 m + 1,), of the sums -m to m.

    Examples
    --------
    >>> exchange_law(np.array([1, 1]), Ties.of_clusters(np.arange(2)))
    array([0.25, 0.  , 0.5 , 0.  , 0.25])
    >>> exchange_law(np.array([1, 1]), Ties.of_clusters(np.zeros(2, dtype=int)))
    array([0.5, 0. , 0. , 0. , 0.5])
    """
    votes = np.asarray(votes).astype(int)
    law = _of_coins(int(np.abs(votes[ties.is_single]).sum()))
    order, first, of_cluster = ties.contrasts_in_order
    if not len(order):
        return law
    side = ties.side[order]
    toward = votes[order] * side
    columns = (np.ones_like(side), side > 0, toward > 0, toward < 0)
    counts = np.stack(
        [np.add.reduceat(column.astype(int), first) for column in columns], axis=1
    )
    ends = np.flatnonzero(np.diff(of_cluster)) + 1
    for of_one in np.split(counts, ends):
        law = np.convolve(law, _of_cluster(tuple(map(tuple, of_one.tolist()))))
    return law


def p_above(votes: np.ndarray, ties: Ties) -> float:
    """Return how likely so many right ones, or more, are of a model that only likes words.

    Examples
    --------
    >>> one_direction = Ties(np.zeros(8, int), np.ones(8, int), np.zeros(8, int))
    >>> both = Ties(np.zeros(8, int), np.array([1, -1] * 4), np.zeros(8, int))
    >>> p_above(np.ones(8), one_direction), round(p_above(np.ones(8), both), 4)
    (0.5, 0.0143)
    """
    law = exchange_law(votes, ties)
    return float(min(1.0, law[len(law) // 2 + int(np.sum(votes)) :].sum()))


def p_changed(votes: np.ndarray, ties: Ties) -> float:
    """Return how likely so large a change, up or down, is where only likings changed.

    Examples
    --------
    >>> p_changed(np.array([1, 1, 1, 1, 0, 0]), Ties.of_clusters(np.arange(6)))
    0.125
    """
    law = exchange_law(votes, ties)
    total = abs(int(np.sum(votes)))
    if total == 0:
        return 1.0
    centre = len(law) // 2
    return float(
        min(1.0, law[centre + total :].sum() + law[: centre - total + 1].sum())
    )


@lru_cache(maxsize=4096)
def _of_cluster(counts: Counts) -> np.ndarray:
    """Return the law of one cluster, whose words may be exchanged as a whole."""
    law = np.ones(1)
    for of_contrast in counts:
        law = np.convolve(law, _of_contrast(*of_contrast))
    return (law + law[::-1]) / 2


@lru_cache(maxsize=4096)
def _of_contrast(number: int, of_side: int, towards: int, away: int) -> np.ndarray:
    """Return the law of a contrast whose choices are dealt anew to its examples.

    Of `number` examples `of_side` have one word on the right side. As many as `towards` vote for
    that word, `away` against it, the rest for none: a hypergeometric law of two kinds.
    """
    votes = towards + away
    up = np.arange(min(towards, of_side) + 1)[:, None]
    down = np.arange(min(away, of_side) + 1)
    rest = of_side - up - down
    others = number - votes
    possible = (rest >= 0) & (rest <= others)
    rest = np.clip(rest, 0, others)
    weight = _ways(towards, up) + _ways(away, down) + _ways(others, rest)
    share = np.exp(weight - _ways(number, of_side)) * possible
    total = 2 * (up - down) - (towards - away)
    law = np.bincount((total + votes)[possible], share[possible], 2 * votes + 1)
    return np.asarray(law / law.sum())


def _ways(of: int, number: np.ndarray | int) -> np.ndarray:
    """Return the logarithm of a binomial coefficient."""
    return np.asarray(
        gammaln(of + 1.0) - gammaln(number + 1.0) - gammaln(of - number + 1.0)
    )


def _of_coins(number: int) -> np.ndarray:
    """Return the law of the sum of votes that are each for or against with one half."""
    from scipy.stats import binom

    law = np.zeros(2 * number + 1)
    law[::2] = binom.pmf(np.arange(number + 1), number, 0.5)
    return law


def guess_law(chance: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return how likely each number of right ones is by guesses, where a unit is right as a whole.

    Parameters
    ----------
    chance
        (n,) probability of each example to be right; the same within a unit.
    unit
        (n,) a number for examples that are right together.

    Examples
    --------
    >>> guess_law(np.array([0.5, 0.5, 0.25]), np.array([0, 0, 1])).round(3)
    array([0.375, 0.125, 0.375, 0.125])
    """
    from scipy.stats import binom

    _, first, size = np.unique(unit, return_index=True, return_counts=True)
    kinds, number = np.unique(
        np.stack([size, chance[first]]), axis=1, return_counts=True
    )
    law = np.ones(1)
    for (each, p), many in zip(kinds.T, number, strict=True):
        of_kind = np.zeros(int(each) * many + 1)
        of_kind[:: int(each)] = binom.pmf(np.arange(many + 1), many, p)
        law = np.convolve(law, of_kind)
    return law
