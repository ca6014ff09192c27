"""The span of a loss in its picture: that of the runs, and of what is near them."""

from __future__ import annotations

import math
from collections.abc import Iterable

_MOST = 5  # times the span of the runs, or of a tenth of their largest value


def value_span(values: Iterable[float], beside: Iterable[float]) -> tuple[float, float]:
    """Return the span of some values, and of those `beside` them as far as a fifth is left to them.

    What is not finite counts for nothing. The page's scripts do the same.

    Examples
    --------
    >>> value_span([2.0, 4.0], [5.0, 90.0, float("nan")])
    (2.0, 5.0)
    """
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known), max(known)
    most = _MOST * max(high - low, abs(high) / 10)

    def away(value: float) -> float:
        return max(low - value, value - high)

    for value in sorted(filter(math.isfinite, beside), key=away):
        if max(high, value) - min(low, value) <= most:
            low, high = min(low, value), max(high, value)
    return float(low), float(high)


def with_arrow(words: str, value: float, span: tuple[float, float]) -> str:
    """Return words with an arrow before them where their value leaves the span.

    Examples
    --------
    >>> with_arrow("uniform guess 90", 90.0, (2.0, 5.0))
    '↑ uniform guess 90'
    """
    low, high = span
    if low <= value <= high:
        return words
    return f"{'↑' if value > high else '↓'} {words}"
