"""Checks of options that several extractors share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..errors import ArgumentError, check_number, check_whole


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return NumPy's generator for a seed, by scikit-learn's convention.

    Raises
    ------
    ArgumentError
        If it is no whole number from 0 to 2^32 - 1, no ``numpy.random.RandomState`` and not None.

    Examples
    --------
    >>> check_seed(3).randint(10)
    8
    """
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ArgumentError(
            "random_state must be a whole number from 0 to 4294967295, a numpy.random.RandomState "
            f"or None; got {random_state!r}."
        ) from None


def check_stopping(max_iter: object, tol: object) -> None:
    """Check a stopping rule.

    Raises
    ------
    ArgumentError
        If `max_iter` is not a whole number of at least 1 or `tol` no finite number of at least 0.
    """
    check_whole("max_iter", max_iter)
    check_number("tol", tol)
