"""Checks of options that several extractors share."""

from __future__ import annotations

import math

from ..errors import ArgumentError, check_whole

__all__ = ["check_positive", "check_stopping"]


def check_stopping(max_iter: object, tol: object) -> None:
    """Check a stopping rule.

    Raises
    ------
    ArgumentError
        If `max_iter` is not a whole number of at least 1 or `tol` is negative.
    """
    check_whole("max_iter", max_iter)
    if not isinstance(tol, int | float) or not tol >= 0:
        raise ArgumentError(f"tol must be a number of at least 0; got {tol!r}.")


def check_positive(name: str, value: object) -> float:
    """Return `value` if it is a finite number above 0.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(f"{name} must be a number above 0; got {value!r}.")
    if not (value > 0 and math.isfinite(value)):
        raise ArgumentError(f"{name} must be a finite number above 0; got {value!r}.")
    return float(value)
