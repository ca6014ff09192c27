"""Numbers and steps as people read them: thousands separated, no more digits than are known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

# XML 1.0 allows no other control characters, and a lone surrogate cannot be written as UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


def plain_text(value: object) -> str:
    """Return `value` as text that HTML, SVG and JSON can all carry; the rest becomes ``�``."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value))


def number(value: float, uncertainty: float = math.nan) -> str:
    """Return `value` with two digits of its uncertainty, or four digits where that is unknown.

    Examples
    --------
    >>> number(0.43219, 0.012), number(-0.3, 40), number(float("nan"))
    ('0.432', '0', 'not measured')
    """
    if not math.isfinite(value):
        return "not measured"
    has_size = math.isfinite(uncertainty) and uncertainty > 0
    if value == 0 or (has_size and abs(value) < uncertainty / 1000):
        return "0"
    size = math.floor(math.log10(abs(value)))
    decimals = 1 - math.floor(math.log10(uncertainty)) if has_size else 3 - size
    decimals = max(min(decimals, 8 - size), 0)
    if abs(value) < 1e-4:
        return f"{value:.{max(min(decimals + size, 8), 0)}e}"
    return f"{value:z,.{decimals}f}"


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


def p_words(p: float, name: str = "p") -> str:
    """Return a p-value with its name.

    Examples
    --------
    >>> p_words(0.00004), p_words(0.0312, "p against controls")
    ('p < 0.0001', 'p against controls = 0.031')
    """
    return f"{name} {'' if p < 1e-4 else '= '}{p_value(p)}"


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
    >>> plural(2, "ability"), plural(2, "key"), plural(2, "class")
    ('2 abilities', '2 keys', '2 classes')
    """
    if n != 1:
        noun = _many(noun)
    return f"{n:,} {noun}"


def _many(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in ("", *"aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "sh", "ch", "x")) else f"{noun}s"


def three_digits(value: float) -> str:
    """Return `value` with three digits, from 1,000 on as a whole number.

    Examples
    --------
    >>> three_digits(8.3441), three_digits(12345.6)
    ('8.34', '12,346')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def from_to(first: Sequence[float], last: Sequence[float], units: str = "1") -> str:
    """Return two ranges, no number finer than three digits of the largest.

    Examples
    --------
    >>> from_to([-0.00104, -0.0000937], [0.963, 0.971], "nats"), from_to([83.0], [64.0])
    ('from −0.001–0 to 0.963–0.971 nats', 'from 83 to 64')
    >>> from_to([7.64, 7.661], [5.0, 5.01])
    'from 7.64–7.66 to 5.00–5.01'
    """
    largest = max(
        (abs(value) for value in (*first, *last) if math.isfinite(value)), default=0
    )
    digits = 2 - math.floor(math.log10(largest)) if largest else 0

    def write(value: float) -> str:
        return three_digits(round(value, digits) + 0.0)  # no "-0"

    of_units = "" if units == "1" else f" {units}"
    ranges = [_same_decimals(value_range(ends, write)) for ends in (first, last)]
    return f"from {ranges[0]} to {ranges[1]}{of_units}"


def _same_decimals(text: str, between: str = "–") -> str:
    """Return a range with as many decimals at both ends; zero has none, nor has an exponent."""
    ends = text.split(between)
    decimals = [len(end.partition(".")[2]) for end in ends]
    if "e" in text:
        return text
    padded = []
    for end, own in zip(ends, decimals, strict=True):
        point = "." if own == 0 and max(decimals) > 0 else ""
        missing = "0" * (max(decimals) - own)
        padded.append(end if end == "0" else f"{end}{point}{missing}")
    return between.join(padded)


def value_range(
    values: Iterable[float],
    write: Callable[[float], str] = three_digits,
    between: str = "–",
) -> str:
    """Return the range of the finite `values`, or the one that they all are.

    Examples
    --------
    >>> value_range([8.34, 8.31, float("nan")]), value_range([1200.0])
    ('8.31–8.34', '1,200')
    """
    finite = [value for value in values if math.isfinite(value)]
    ends = (write(end).replace("-", "−") for end in (min(finite), max(finite)))
    return between.join(dict.fromkeys(ends))


def fine_step(step: float) -> str:
    """Return a training step, below 10 with one decimal.

    Examples
    --------
    >>> fine_step(4.52), fine_step(2.0), fine_step(1234.5)
    ('4.5', '2', '1,234')
    """
    return f"{step:,.0f}" if step >= 10 else f"{step:.1f}".removesuffix(".0")


def values_words(first: float, last: float, between: str = " to ") -> str:
    """Return two values with three digits, and more where their difference is small.

    Examples
    --------
    >>> (
    ...     values_words(8.3441, 5.0211),
    ...     values_words(0.91, 0.9123),
    ...     values_words(8, float("nan")),
    ... )
    ('8.34 to 5.02', '0.910 to 0.912', '')
    """
    if not (math.isfinite(first) and math.isfinite(last)):
        return ""
    largest = max(abs(first), abs(last))
    precision = 10.0 ** (math.floor(math.log10(largest)) - 1) if largest else math.nan
    precision = min(precision, 10 * abs(last - first) or precision)
    return between.join(number(value, precision) for value in (first, last)).replace(
        "-", "−"
    )


def joined(words: Sequence[str], last: str = " and ") -> str:
    """Return words as a list in a sentence.

    Examples
    --------
    >>> joined(["51", "60", "58"]), joined(["51"])
    ('51, 60 and 58', '51')
    """
    return last.join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def first_of(names: Sequence[str], most: int) -> list[str]:
    """Return the first of several names, and how many more there are.

    Examples
    --------
    >>> first_of(["51", "60", "58"], 2), first_of(["51"], 2)
    (['51', '60', '1 more'], ['51'])
    """
    more = len(names) - most
    return [*names[:most], *([f"{more:,} more"] if more > 0 else [])]


def sentence_start(text: str) -> str:
    """Return `text` with a capital first letter.

    Examples
    --------
    >>> sentence_start("attention entropy")
    'Attention entropy'
    """
    # Of a mark (`ontogeny.words.voice`) the name within.
    start = text[:1].removeprefix("{")
    return text[:1].upper() + text[1:] if start else text[:2].upper() + text[2:]


def mid_sentence(text: str) -> str:
    """Return `text` as it stands within a sentence: lower case, unless it starts with a name.

    Examples
    --------
    >>> mid_sentence("Loss on held-out text"), mid_sentence("ICA concepts")
    ('loss on held-out text', 'ICA concepts')
    """
    mark = "{" if text.startswith("{") else ""  # the name within is the first word
    first = text.removeprefix(mark).split(" ")[0]
    is_word = first == "A" or first[1:].islower()
    return mark + first[:1].lower() + text[len(mark) + 1 :] if is_word else text
