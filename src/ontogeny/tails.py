"""Probabilities beyond a value, and values beyond which so much is: Student's t, the normal law.

They are the bits of `scipy.stats`, which takes a third of a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtrc, ndtr, ndtri, stdtr, stdtrit


def t_above(score: ArrayLike, freedom: ArrayLike) -> Any:
    """Return the probability of more than `score` under Student's t; NaN without freedom.

    Examples
    --------
    >>> print(t_above(0.0, 3), round(t_above(2.353, 3), 3))
    0.5 0.05
    """
    return stdtr(freedom, -np.asarray(score))


def t_limit(level: ArrayLike, freedom: ArrayLike) -> Any:
    """Return what Student's t exceeds with the probability `level`; NaN without freedom.

    Examples
    --------
    >>> print(round(t_limit(0.025, 10), 3), t_limit(0.0, 10))
    2.228 inf
    """
    return -stdtrit(freedom, level) * np.where(np.asarray(level) > 0, 1, -1)


def normal_above(score: ArrayLike) -> Any:
    """Return the probability of more than `score` under the standard normal law.

    Examples
    --------
    >>> print(round(normal_above(1.645), 3))
    0.05
    """
    return ndtr(-np.asarray(score))


def normal_limit(level: ArrayLike) -> Any:
    """Return what the standard normal law exceeds with the probability `level`.

    Examples
    --------
    >>> print(round(normal_limit(0.025), 3))
    1.96
    """
    return -ndtri(level)


def binomial_above(count: float, tries: float, share: float) -> float:
    """Return the probability of more than `count` in so many `tries`.

    Examples
    --------
    >>> binomial_above(1, 2, 0.5), binomial_above(-1, 2, 0.5)
    (0.25, 1.0)
    """
    return float(bdtrc(count, int(tries), share))
