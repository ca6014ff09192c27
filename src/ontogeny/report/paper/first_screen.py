"""The first screen for papers: its words over its picture, the loss over life lines of concepts.

The words are those of the page; only where lines break is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure, SubFigure

from ...words.content import Content
from ...words.formats import number
from ...words.labels import truncate
from ...words.landmarks import control_curve
from ...words.sections import studied
from ..colours import BASE, LEVELS, PROGRESS, ramp
from ..concepts.lives import Concept, Concepts, line_names
from ..first_screen.screen import FirstScreen
from ..scales import StepScale, pick_ticks
from ..value_span import value_span, with_arrow
from .frame import FONT, PAGE, TALLEST, fix_layout, hatch
from .text import Words, broken, draw_lines, line_height

_INK, _INK_2, _INK_3, _NULL = (
    BASE["light"][n] for n in ("ink", "ink-2", "ink-3", "null")
)
# Between columns of text, in inches.
_GAP = 0.2

_MARGIN = 0.06
_SMALL = 0.93 * FONT
_VALUE = 1.5 * FONT
_HEADING = 1.7 * FONT
_ROW = 0.15  # inches
_LOSS = 1.1
_ROOM = 0.05  # of the span of the loss, above and below it
_TINT = ramp(PROGRESS["light"], LEVELS)[LEVELS // 2]


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
    """Return the sentences side by side, each finding behind its number."""
    count = max(len(first.sentences), 1)
    indent = 0.13
    width = (PAGE - 2 * _MARGIN - (count - 1) * _GAP) / count
    blocks: list[Block] = []
    number = 0
    for i, sentence in enumerate(first.sentences):
        number += not sentence.note
        x = _MARGIN + i * (width + _GAP)
        words = [
            Words(sentence.lead, FONT, _INK, bold=not sentence.note),
            Words(sentence.text, FONT, _INK),
        ]
        if not sentence.note:
            blocks.append((x, 0.0, [[Words(str(number), FONT, _INK_3, bold=True)]]))
        blocks.append((x + indent, 0.0, broken(words, width - indent)))
    return max((_height(lines) for _, _, lines in blocks), default=0.0) + 0.1, blocks


def _numbers(first: FirstScreen) -> tuple[float, list[Block]]:
    """Return the numbers side by side, each over what it is."""
    count = len(first.numbers)
    width = (PAGE - 2 * _MARGIN - (count - 1) * _GAP) / count
    blocks: list[Block] = []
    down = 0.0
    for i, fact in enumerate(first.numbers):
        x = _MARGIN + i * (width + _GAP)
        value = broken([Words(fact.value, _VALUE, _INK, bold=True)], width)
        words = broken([Words(fact.words, _SMALL, _INK_2)], width)
        blocks += [(x, 0.0, value), (x, _height(value), words)]
        down = max(down, _height(value) + _height(words))
    return down + 0.12, blocks


def _height(lines: Sequence[Sequence[Words]]) -> float:
    return sum(map(line_height, lines))


def draw_life_figure(content: Content, first: FirstScreen) -> Figure:
    """Return the loss with its lines and controls over the life lines, on one step axis."""
    figure = Figure(figsize=(PAGE, life_height(first, TALLEST)), layout="constrained")
    fill_life(figure, content, first)
    return figure


def life_height(first: FirstScreen, most: float) -> float:
    """Return how high the picture is in inches, at most `most`."""
    return min(sum(_heights(first)) + 0.75, most)


def _heights(first: FirstScreen) -> list[float]:
    """Return the heights of the loss and of the life lines, of those that there are."""
    lines = first.concepts.lines if first.concepts else ()
    return ([_LOSS] if first.loss is not None else []) + (
        [_ROW * len(lines)] if bool(lines) else []
    )


def fill_life(figure: Figure | SubFigure, content: Content, first: FirstScreen) -> None:
    """Draw the loss and the life lines on a figure or a part of one."""
    lines = first.concepts.lines if first.concepts else ()
    heights = _heights(first)
    panels = figure.subplots(
        len(heights), 1, sharex=True, height_ratios=heights, squeeze=False
    )
    axes = list(panels.ravel())
    scale = StepScale(content.steps, "log")
    if first.loss is not None:
        _draw_loss(axes[0], content, first, scale)
    if first.concepts is not None and lines:
        _draw_lines(axes[-1], first.concepts, scale)
    edges = scale.edges(content.steps)
    axes[-1].set_xlim(min(edges.min(), -0.02), max(edges.max(), 1.02))
    ticks = pick_ticks(scale.ticks(), PAGE * 0.6 * 72, 0.6 * FONT)
    axes[-1].set_xticks([t.position for t in ticks], [t.label for t in ticks])
    axes[-1].set_xlabel(content.voice.clock)


def _draw_loss(
    axes: Axes, content: Content, first: FirstScreen, scale: StepScale
) -> None:
    track = content.track
    loss = first.loss
    assert track is not None and loss is not None
    at = scale.positions(track.steps)
    control = control_curve(content)
    ends = [(f"run {number(loss.last, 0.1)}", loss.last, _INK)]
    span = value_span(track.values, [*loss.levels.values(), *chain(*(control or ()))])
    if control is not None:
        low, high = (np.asarray(side) for side in control)
        axes.fill_between(at, low, high, color=_NULL, alpha=0.5, linewidth=0)
        ends.append(("control", float((low[-1] + high[-1]) / 2), _INK_2))
    for words, level in loss.levels.items():
        if span[0] <= level <= span[1]:
            axes.axhline(level, color=_INK_2, linewidth=0.6, linestyle="--")
        ends.append((f"{words} {number(level, 0.1)}", level, _INK_2))
    axes.plot(at, track.values, color=_INK, linewidth=1.1)
    room = _ROOM * ((span[1] - span[0]) or 1.0)
    axes.set_ylim(span[0] - room, span[1] + room)
    axes.set_title(truncate(track.title, 60), loc="left", fontsize=FONT)
    axes.set_ylabel(truncate(track.units, 24))
    _label_ends(axes, [(with_arrow(*end[:2], span), *end[1:]) for end in ends], span)


def _label_ends(
    axes: Axes, ends: list[tuple[str, float, str]], span: tuple[float, float]
) -> None:
    """Write labels at the ends of their lines, moved apart where they would overlap."""
    finite = sorted((e for e in ends if math.isfinite(e[1])), key=lambda end: -end[1])
    low, high = axes.get_ylim()
    apart = (high - low) * FONT * 1.25 / (_LOSS * 72)
    above = math.inf
    for words, value, colour in finite:
        above = min(max(value, span[0]), span[1], above - apart)
        axes.annotate(
            words,
            (1, above),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=colour,
        )


def _draw_lines(axes: Axes, concepts: Concepts, scale: StepScale) -> None:
    edges = scale.edges(concepts.data["step"].values.astype(int))
    for y, concept in enumerate(concepts.lines):
        _draw_cells(axes, concepts, concept, edges, y)
        if math.isfinite(concept.born):
            ends = [
                e if math.isfinite(e) else concept.born
                for e in (concept.after, concept.before)
            ]
            low, high, at = scale.positions([*ends, concept.born])
            axes.plot([low, high], [y, y], color="white", linewidth=2.6)
            axes.plot([low, high], [y, y], color=_INK, linewidth=0.9)
            axes.plot(at, y, "o", color=_INK, markersize=2.6)
        axes.annotate(
            concept.life,
            (1, y),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=_INK_2,
        )
    names = line_names(concepts.lines)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)


def _draw_cells(
    axes: Axes, concepts: Concepts, concept: Concept, edges: np.ndarray, y: int
) -> None:
    """Draw one cell for each step: tinted by the share of the peak, or hatched."""
    strength, course = (
        concepts.arrays.over_steps(name)[concept.place]
        for name in ("strength", "readability")
    )
    share = np.clip(strength / concept.peak, 0, 1)
    clear = np.nan_to_num(course, nan=-1.0) >= concepts.readable
    is_finite = np.isfinite(share)
    boxes = np.array(
        [[(a, y - 0.36), (b, y - 0.36), (b, y + 0.36), (a, y + 0.36)] for a, b in edges]
    )
    tinted = is_finite & clear
    tints = [to_rgba(_TINT, 0.03 + 0.87 * value) for value in share[tinted]]
    if tinted.any():
        axes.add_collection(
            PolyCollection(list(boxes[tinted]), facecolors=tints, linewidths=0)
        )
    if (is_finite & ~clear).any():
        hatch(axes, list(boxes[is_finite & ~clear]), _NULL)
