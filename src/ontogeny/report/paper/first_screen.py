"""The first screen for papers: its heading, sentences and numbers over the picture, as one figure.

The words are those of the page; only where lines break is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ...words.content import Content
from ...words.sections import studied
from ..colours import BASE
from ..first_screen.screen import FirstScreen
from .frame import FONT, PAGE, TALLEST, fix_layout
from .life_lines import fill_life, life_height
from .text import Words, broken, draw_lines, line_height

_INK, _INK_2, _INK_3 = (BASE["light"][name] for name in ("ink", "ink-2", "ink-3"))
_GAP = 0.2
"""Between columns of text, in inches."""

_MARGIN = 0.06
_SMALL, _VALUE, _HEADING = 0.93 * FONT, 1.5 * FONT, 1.7 * FONT


def draw_first_screen(content: Content, first: FirstScreen) -> Figure:
    """Return the first screen, two columns wide and at most a page high."""
    parts = _parts(content, first)
    words = sum(height for height, _ in parts) + 2 * _MARGIN
    lives_height = life_height(first, TALLEST - words)
    figure = Figure(figsize=(PAGE, words + lives_height), layout="constrained")
    halves = figure.subfigures(2, 1, height_ratios=[words, lives_height], squeeze=False)
    fill_life(halves[1, 0], content, first)
    top = words + lives_height - _MARGIN
    for height, blocks in parts:
        for x, down, block in blocks:
            draw_lines(figure, x, top - down, block)
        top -= height
    fix_layout(figure)
    return figure


Block = tuple[float, float, list[list[Words]]]
"""Where lines start, from the left and from the top of their part, in inches, and the lines."""


def _parts(content: Content, first: FirstScreen) -> list[tuple[float, list[Block]]]:
    """Return the parts of the text from top to bottom, each with its height."""
    full = PAGE - 2 * _MARGIN
    title = broken([Words(content.title, FONT, _INK, bold=True)], full)
    about = broken([Words(studied(content), _SMALL, _INK_2)], full)
    heading = broken([Words(first.heading, _HEADING, _INK, bold=True)], full)
    return [
        *((_height(lines), [(_MARGIN, 0.0, lines)]) for lines in (title, about)),
        (_height(heading) + 0.2, [(_MARGIN, 0.1, heading)]),
        _sentences(first),
        _numbers(first),
    ]


def _sentences(first: FirstScreen) -> tuple[float, list[Block]]:
    """Return the three sentences side by side, each behind its number."""
    count, indent = len(first.sentences), 0.13
    width = (PAGE - 2 * _MARGIN - (count - 1) * _GAP) / count
    blocks: list[Block] = []
    for i, sentence in enumerate(first.sentences):
        x = _MARGIN + i * (width + _GAP)
        words = [Words(sentence.lead, FONT, _INK, bold=True), Words(sentence.text, FONT, _INK)]
        blocks.append((x, 0.0, [[Words(str(i + 1), FONT, _INK_3, bold=True)]]))
        blocks.append((x + indent, 0.0, broken(words, width - indent)))
    return max(_height(lines) for _, _, lines in blocks) + 0.1, blocks


def _numbers(first: FirstScreen) -> tuple[float, list[Block]]:
    """Return the numbers side by side, each over what it is."""
    count = len(first.numbers)
    width = (PAGE - 2 * _MARGIN - (count - 1) * _GAP) / count
    blocks: list[Block] = []
    down = 0.0
    for i, number in enumerate(first.numbers):
        x = _MARGIN + i * (width + _GAP)
        value = broken([Words(number.value, _VALUE, _INK, bold=True)], width)
        words = broken([Words(number.words, _SMALL, _INK_2)], width)
        blocks += [(x, 0.0, value), (x, _height(value), words)]
        down = max(down, _height(value) + _height(words))
    return down + 0.12, blocks


def _height(lines: Sequence[Sequence[Words]]) -> float:
    return sum(map(line_height, lines))
