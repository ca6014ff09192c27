"""Text that is broken into lines of a given width, with parts in bold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

# Dots per inch at which text is measured: those of the pictures that are saved.
_FINE = 300

_LEADING = 1.32
_POINTS = 72.0


@dataclass(frozen=True)
class Words:
    """Words of one look; ``size`` is in points."""

    text: str
    size: float
    colour: str
    bold: bool = False

    @property
    def weight(self) -> str:
        """The weight as matplotlib names it."""
        return "bold" if self.bold else "normal"

    @property
    def width(self) -> float:
        """Width in inches."""
        font = FontProperties(size=self.size, weight=self.weight)
        wide, _, _ = RendererAgg(1, 1, _FINE).get_text_width_height_descent(
            self.text, font, False
        )
        return float(wide) / _FINE


def broken(words: Sequence[Words], width: float) -> list[list[Words]]:
    """Return lines no wider than `width` inches; a word that is wider is broken too."""
    lines: list[list[Words]] = [[]]
    for word in _single(words, width):
        longer = _joined([*lines[-1], word])
        if lines[-1] and sum(part.width for part in longer) > width:
            lines.append([word])
        else:
            lines[-1] = longer
    return [line for line in lines if line]


def _single(words: Sequence[Words], width: float) -> Iterator[Words]:
    for part in words:
        for text in part.text.split():
            rest = text
            while rest:
                count = len(rest)
                while count > 1 and replace(part, text=rest[:count]).width > width:
                    count -= 1
                yield replace(part, text=rest[:count])
                rest = rest[count:]


def _joined(words: Sequence[Words]) -> list[Words]:
    """Join neighbours of one look; others keep the space between them."""
    *before, last = words
    if not before:
        return [last]
    end = before[-1]
    if replace(end, text="") == replace(last, text=""):
        return [*before[:-1], replace(end, text=f"{end.text} {last.text}")]
    return [*before[:-1], replace(end, text=f"{end.text} "), last]


def line_height(line: Sequence[Words]) -> float:
    """Return the height of a line in inches."""
    return _LEADING * max(words.size for words in line) / _POINTS


def draw_lines(
    figure: Figure, x: float, top: float, lines: Sequence[Sequence[Words]]
) -> None:
    """Write lines from `x` and `top`, in inches from the lower left corner of the figure."""
    wide, high = figure.get_size_inches()
    for line in lines:
        top -= line_height(line)
        at = x
        base = top + 0.28 * max(words.size for words in line) / _POINTS
        for words in line:
            figure.text(
                at / wide,
                base / high,
                words.text.rstrip(),
                size=words.size,
                color=words.colour,
                weight=words.weight,
                va="baseline",
                ha="left",
            )
            at += words.width
