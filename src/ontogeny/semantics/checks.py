"""Checks of arguments that several functions of this room share."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from ..errors import ArgumentError

__all__ = ["check_number"]


def check_number(name: str, value: Any, least: float = 0.0, *, above: bool = False) -> float:
    """Return `value` as a finite number of at least `least`, or `above` it.

    Raises
    ------
    ArgumentError
        If it is no number, not finite, or too small.

    Examples
    --------
    >>> check_number("ridge", 0)
    0.0
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < least or (above and value == least):
        wanted = f"above {least:g}" if above else f"of at least {least:g}"
        raise ArgumentError(f"{name} must be a finite number {wanted}; got {value!r}.")
    return float(value)
