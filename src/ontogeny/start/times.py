"""Times as they are typed: a budget of eight hours is ``8h``."""

from __future__ import annotations

import re

from ..errors import ArgumentError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def hours_of(text: str, option: str = "--budget") -> float:
    """Return the hours of a time such as ``8h``, ``30m`` or ``1.5d``, given by an option.

    Raises
    ------
    ArgumentError
        If it is no such text, or nothing.

    Examples
    --------
    >>> hours_of("30m"), hours_of("1.5d")
    (0.5, 36.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if match is None or float(match[1]) == 0:
        raise ArgumentError(
            f"{option} must be a time above zero such as 8h, 30m, 90s or 2d; got {text!r}."
        )
    return float(match[1]) * _SECONDS[match[2]] / 3600
