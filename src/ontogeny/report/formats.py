"""Numbers and steps as people read them: thousands separated, no more digits than are known."""

from __future__ import annotations

import math
import re

# XML 1.0 allows no other control characters, and a lone surrogate cannot be written as UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


def plain_text(value: object) -> str:
    """Return `value` as text that HTML, SVG and JSON can all carry; the rest becomes ``�``."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value))


def number(value: float, uncertainty: float = math.nan) -> str:
    """Return `value` with two digits of its uncertainty, or four digits where that is unknown.

    Examples
    --------
    >>> number(0.43219, 0.012), number(12345.6), number(float("nan"))
    ('0.432', '12,346', 'not measured')
    """
    if not math.isfinite(value):
        return "not measured"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    known = math.isfinite(uncertainty) and uncertainty > 0
    decimals = 1 - math.floor(math.log10(uncertainty)) if known else 3 - size
    decimals = max(min(decimals, 8 - size), 0)
    if abs(value) < 1e-4:
        return f"{value:.{max(min(decimals + size, 8), 0)}e}"
    return f"{value:,.{decimals}f}"


def step_text(step: float) -> str:
    """Return a training step: whole, thousands separated.

    Examples
    --------
    >>> step_text(12345.4)
    '12,345'
    """
    return f"{round(step):,}" if math.isfinite(step) else "never"


def interval_text(low: float, high: float) -> str:
    """Return ``350–480``, or an empty string where there is none to speak of.

    Examples
    --------
    >>> interval_text(350.2, 480.0)
    '350–480'
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    ends = step_text(low), step_text(high)
    return "" if ends[0] == ends[1] else "–".join(ends)


def with_interval(step: float, low: float, high: float) -> str:
    """Return a training step, with its interval in brackets where there is one.

    Examples
    --------
    >>> with_interval(410, 350.2, 480.0), with_interval(410, float("nan"), float("nan"))
    ('410 (350–480)', '410')
    """
    spread = interval_text(low, high)
    return f"{step_text(step)} ({spread})" if spread else step_text(step)


def p_value(p: float) -> str:
    """Return a p-value with one or two digits.

    Examples
    --------
    >>> p_value(0.00004), p_value(0.0312)
    ('< 0.0001', '0.031')
    """
    if not math.isfinite(p):
        return "not tested"
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def count(n: float) -> str:
    """Return a large count in words' size: 1.81 million.

    Examples
    --------
    >>> count(1_812_224), count(950)
    ('1.81 million', '950')
    """
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if n >= size:
            return f"{n / size:.3g} {word}"
    return f"{round(n):,}"


def plural(n: int, noun: str) -> str:
    """Return ``1 step``, ``2 steps``.

    Examples
    --------
    >>> plural(1, "layer"), plural(1200, "layer")
    ('1 layer', '1,200 layers')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
