"""One check that the numbers of draws, dimensions and components share."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError

__all__ = ["check_whole"]


def check_whole(name: str, value: object, least: int = 1) -> int:
    """Return `value` as an integer if it is a whole number of at least `least`.

    Raises
    ------
    ArgumentError
        If it is a boolean, a float (also NaN), anything else that is no integer, or too small.

    Examples
    --------
    >>> check_whole("k", np.int64(3))
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
