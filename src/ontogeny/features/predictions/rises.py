"""Whether a course rises in the end, beyond noise between checkpoints.

A line is fitted to each stretch that reaches to the end, and the surest rise of all counts. The
same is asked of flat courses with fresh noise, and with noise that remembers half of itself. A
course that still falls at first rises less surely than a flat one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...dynamics.memory import with_memory
from ...tails import t_above

FEWEST = 4  # checkpoints of a stretch: two are fitted, two show the noise
MEMORY = 0.5  # of noise, from one checkpoint to the next
DRAWS = 999


def rise_p_value(course: np.ndarray) -> float:
    """Return how often a course that does not rise seems to rise as surely as this one.

    Parameters
    ----------
    course
        (T,) values at checkpoints; 1 is returned of fewer than four, of equal ones, and where one
        is not finite.

    Examples
    --------
    >>> fall = np.array([0.9, 0.5, 0.3, 0.2, 0.2, 0.2])
    >>> rise_p_value(np.append(fall, [0.3, 0.4, 0.5])) <= 0.01
    True
    >>> rise_p_value(np.append(fall, [0.21, 0.2, 0.21])) > 0.05
    True
    """
    size = np.ptp(course)
    if len(course) < FEWEST or not 0 < size < np.inf:
        return 1.0
    seen = _surest_rise(course[None] / size)[0]
    shares = [(1 + np.sum(drawn <= seen)) / (1 + DRAWS) for drawn in _flat(len(course))]
    return float(max(shares))


def _surest_rise(courses: np.ndarray) -> np.ndarray:
    """Return for each course (n, T) the smallest p-value of a rise over stretches to its end."""
    backwards = courses[:, ::-1] - courses.mean(axis=1, keepdims=True)
    place = np.arange(courses.shape[1])
    count = place + 1.0
    sums = backwards.cumsum(axis=1)
    along = (place * backwards).cumsum(axis=1) - place / 2 * sums
    falls = along / np.sqrt(np.maximum(count * (count**2 - 1) / 12, 1.0))
    rest = (backwards**2).cumsum(axis=1) - sums**2 / count - falls**2
    freedom = count[FEWEST - 1 :] - 2
    error = np.sqrt(np.maximum(rest[:, FEWEST - 1 :], 1e-15) / freedom)
    p_values = t_above(-falls[:, FEWEST - 1 :] / error, freedom)
    return np.asarray(p_values.min(axis=1))


@lru_cache(maxsize=32)
def _flat(count: int) -> list[np.ndarray]:
    """Return what flat courses give, with fresh noise and with memory."""
    shocks = np.random.default_rng(0).standard_normal((DRAWS, count))
    return [_surest_rise(shocks), _surest_rise(with_memory(shocks, MEMORY))]
