"""When a series first reaches a level, or reaches it for good."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import matrix, numpy_matrix, to_numpy
from ...errors import ArgumentError, check_flag


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
    times = numpy_matrix("steps", steps, ndim=1)
    check_flag("lasting", lasting)
    series = checked_numbers("values", values)
    if series.ndim < 1 or series.shape[-1] != len(times):
        raise ArgumentError(
            f"values must end in one value for each of {len(times)} steps; "
            f"their shape is {series.shape}."
        )
    if (np.diff(times) <= 0).any():
        raise ArgumentError("steps must increase.")
    at = checked_numbers("level", level)
    try:
        levels = np.broadcast_to(at, series.shape[:-1])
    except ValueError:
        raise ArgumentError(
            f"level has shape {at.shape}, which does not fit series of shape {series.shape}."
        ) from None
    if lasting:  # the smallest value from here on, gaps left out
        series = np.fmin.accumulate(series[..., ::-1], axis=-1)[..., ::-1]
    rows = series.reshape(-1, len(times))
    crossings = [
        _crossing(times, row, at) for row, at in zip(rows, levels.ravel(), strict=True)
    ]
    return np.array(crossings, dtype=np.float64).reshape(series.shape[:-1])


def checked_numbers(name: str, value: ArrayLike) -> np.ndarray:
    """Return any numbers, NaN among them where something is not known."""
    return to_numpy(matrix(name, value, ndim=None, finite=False)).astype(np.float64)


def _crossing(times: np.ndarray, row: np.ndarray, level: float) -> float:
    finite = np.flatnonzero(np.isfinite(row))
    reached = finite[row[finite] >= level]
    if not len(reached):
        return np.nan
    here = reached[0]
    before = finite[finite < here]
    if not len(before):
        return float(times[here])
    last = before[-1]
    share = (level - row[last]) / (row[here] - row[last])
    return float(times[last] + share * (times[here] - times[last]))
