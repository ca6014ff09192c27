"""Shares of a sample and their intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def wilson_interval(
    correct: ArrayLike, count: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return the 95 % score interval of shares (Wilson 1927), which stays within 0 and 1.

    Counts need not be whole: where units of several rows are independent and not the rows, they
    are effective counts (`ontogeny.units.Units.effective_count`).

    Examples
    --------
    >>> low, high = wilson_interval(np.array([10]), np.array([10]))
    >>> low.round(2), high.round(2)
    (array([0.72]), array([1.]))
    """
    z2 = 1.959963984540054**2
    count = np.asarray(count, dtype=np.float64)
    share = np.asarray(correct) / count
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = np.sqrt(z2 * (share * (1 - share) + z2 / (4 * count)) / count) / (
        1 + z2 / count
    )
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
