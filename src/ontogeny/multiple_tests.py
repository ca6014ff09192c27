"""Several tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .arrays import numbers
from .errors import ArgumentError


def holm(p_values: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """Return p-values corrected that bound the probability of any false positive among all tests.

    S. Holm, Scand. J. Statist. 6, 1979: the i-th smallest of n is multiplied by n − i + 1, then
    made monotone and cut at 1. With weights, the order is that of p over weight, and the factor the
    weights of all that are left over its own. Valid whatever the tests' dependence. NaN (not
    tested) stays NaN and is not counted.

    Parameters
    ----------
    p_values
        Any shape, each 0 to 1 or NaN.
    weights
        The same shape, above 0: in which shares the tests have the level; equal ones by default.

    Returns
    -------
    numpy.ndarray
        The same shape, float64.

    Raises
    ------
    ArgumentError
        If a value lies outside 0 to 1, or weights are not as many numbers above 0.

    Examples
    --------
    >>> holm([0.01, 0.04, np.nan, 0.03])
    array([0.03, 0.06,  nan, 0.06])
    >>> holm([0.01, 0.01, 0.01], [0.5, 0.25, 0.25])
    array([0.02, 0.02, 0.02])
    """
    values = checked_p_values(p_values)
    flat = values.ravel()
    corrected = np.full(flat.shape, np.nan)
    of_all = np.ones(flat.shape)
    if weights is not None:
        of_all = numbers("weights", weights).ravel()
        if of_all.shape != flat.shape or not np.all(of_all > 0):
            raise ArgumentError(
                f"weights must be {flat.size:,} numbers above 0, one for each p-value; got "
                f"{of_all.size:,} from {of_all.min(initial=np.inf):g} on."
            )
    order = np.argsort(flat / of_all)[: np.count_nonzero(~np.isnan(flat))]
    shares = of_all[order]
    factors = shares[::-1].cumsum()[::-1] / shares
    corrected[order] = np.minimum(np.maximum.accumulate(flat[order] * factors), 1.0)
    return corrected.reshape(values.shape)


def checked_p_values(p_values: ArrayLike) -> np.ndarray:
    """Return p-values as numbers.

    Raises
    ------
    ArgumentError
        If a value lies outside 0 to 1.

    Examples
    --------
    >>> checked_p_values([0.5, 1])
    array([0.5, 1. ])
    """
    values = numbers("p_values", p_values)
    if np.any((values < 0) | (values > 1)):
        raise ArgumentError(
            f"p_values must lie between 0 and 1 or be NaN; they span {np.nanmin(values)} to "
            f"{np.nanmax(values)}."
        )
    return values
