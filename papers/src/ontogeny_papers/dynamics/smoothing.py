"""Moving averages over training steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import convolve1d

from ontogeny.arrays import check_finite
from ontogeny.errors import ArgumentError


def rolling_mean(values: ArrayLike, half_window: int) -> np.ndarray:
    """Return the mean of each value and its `half_window` neighbours on either side.

    At the edges the window shrinks to the neighbours that exist; nothing is padded.

    Parameters
    ----------
    values
        Series (..., T).
    half_window
        Neighbours on each side, 0 or more; 0 gives the values back.

    Returns
    -------
    numpy.ndarray
        The same shape, float64.

    Raises
    ------
    ArgumentError
        If `half_window` is negative or there is no value.
    NonFiniteError
        If a value is NaN or infinite.

    Examples
    --------
    >>> rolling_mean([0.0, 3.0, 6.0, 12.0], 1)
    array([1.5, 3. , 7. , 9. ])
    """
    series = np.asarray(values, dtype=float)
    if series.ndim == 0 or series.size == 0:
        raise ArgumentError(
            f"values must have shape (..., steps); its shape is {series.shape}."
        )
    if half_window < 0:
        raise ArgumentError(f"half_window must be 0 or more; got {half_window}.")
    check_finite("values", series)
    kernel = np.ones(2 * min(int(half_window), series.shape[-1]) + 1)
    sums = convolve1d(series, kernel, axis=-1, mode="constant")
    return sums / convolve1d(np.ones(series.shape[-1]), kernel, mode="constant")
