"""The false discovery rate of several tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from ontogeny.multiple_tests import checked_p_values


def false_discovery(p_values: ArrayLike) -> np.ndarray:
    """Return Benjamini and Hochberg's p-values; NaN (not tested) stays NaN and is not counted.

    Parameters
    ----------
    p_values
        Any shape, each 0 to 1 or NaN; the result has the same shape.

    Raises
    ------
    ArgumentError
        If a value lies outside 0 to 1.

    Examples
    --------
    >>> false_discovery([0.01, 0.04, np.nan, 0.03])
    array([0.03, 0.04,  nan, 0.04])
    """
    values = checked_p_values(p_values)
    corrected = np.full(values.shape, np.nan)
    is_finite = np.isfinite(values)
    if is_finite.any():
        corrected[is_finite] = false_discovery_control(values[is_finite])
    return corrected
