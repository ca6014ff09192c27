"""Checks of options that several extractors share."""

from __future__ import annotations

from ..errors import check_number, check_whole

__all__ = ["check_stopping"]


def check_stopping(max_iter: object, tol: object) -> None:
    """Check a stopping rule.

    Raises
    ------
    ArgumentError
        If `max_iter` is not a whole number of at least 1 or `tol` no finite number of at least 0.
    """
    check_whole("max_iter", max_iter)
    check_number("tol", tol)
