"""The developmental chart as SVG: what changed when, for the whole run, in one figure.

One drawing serves the page (wide and narrow) and the README (standalone, with its own colours).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import chain
from types import MappingProxyType

import numpy as np

from ...claims import Kind
from ...words.catalogue.captions import CAPTIONS
from ...words.content import Content, Finding, RegimeMark, Track
from ...words.formats import (
    interval_text,
    number,
    plural,
    sentence_start,
    with_interval,
)
from ...words.labels import truncate
from ...words.rows import Row
from ..scales import KINDS, pick_ticks
from ..value_span import value_span, with_arrow
from .canvas import WIDE, Canvas, ChartLayout, Points, fitted
from .groups import RowGroup, arrange
from .marks import draw_guides, has_marks
from .rows import (
    MAX_COLUMNS,
    draw_heading,
    draw_legend,
    draw_row,
    end_words,
    value_words,
)


@dataclass(frozen=True)
class Drawing:
    """An SVG element; ``plot`` says where its step axis lies: left, width, first and last place."""

    svg: str
    layout: ChartLayout
    plot: tuple[float, float, float, float]
    notices: tuple[str, ...]


# Findings that say that another run, or another model, may begin at a step.
BREAKS = ("restart", "configuration")

MARGIN = 20  # around a chart that stands alone


# What the rows show: how far each has gone at every step, or when each was half-way.
VIEWS = ("cells", "intervals")


def views_of(content: Content) -> tuple[str, ...]:
    """Return the views that have something to show; several runs have no cells."""
    if any(row.runs for row in content.rows):
        return VIEWS[1:]
    return VIEWS if any(map(has_marks, content.rows)) else VIEWS[:1]


def draw_chart(
    content: Content, layout: ChartLayout = WIDE, style: str = ""
) -> Drawing:
    """Return the chart with all its views.

    `style` is put into a standalone drawing, which has no links and only the first view.
    """
    views = views_of(content)
    views = views[:1] if style else views
    canvas, groups = lay_chart(content, layout, views, links=not style)
    plot = (layout.left, canvas.layout.plot_width, canvas.low, canvas.high)
    return Drawing(
        _wrapped(canvas, content.title, style),
        canvas.layout,
        plot,
        _notices(content, groups),
    )


def lay_chart(
    content: Content, layout: ChartLayout, views: Sequence[str], links: bool = False
) -> tuple[Canvas, list[RowGroup]]:
    """Return all marks of the chart, and the rows that are shown; `links` are for the page."""
    order = {id(row): i for i, row in enumerate(content.rows)}
    row_ids = content.row_ids
    named = [row for row in content.rows if row.learned or _is_ordered(content, row)]
    groups = arrange(content.rows, keep=[order[id(row)] for row in named])
    rows = list(chain(*(group.rows for group in groups if not group.folded)))
    words, ends = (
        [text(row, layout) for row in rows] for text in (value_words, end_words)
    )
    if any(ends):  # both columns have a heading
        words = [*words, "half-change {point}"]
        ends = [*ends, "first → last value"]
    layout = fitted(layout, words, ends)
    canvas = Canvas(
        layout, content.steps, KINDS[: 1 + links], views, content.voice.fill
    )
    if groups:
        draw_legend(canvas, rows)
    top = canvas.y + 8
    behind = len(canvas.parts)
    middles = []
    for group in groups:
        with _unspoken(canvas, links):
            places = [row_ids[order[id(row)]] for row in group.rows]
            draw_heading(canvas, group, places)
        for row in () if group.folded else group.rows:
            middles.append(canvas.y + layout.row / 2 - 1.25)
            draw_row(canvas, row, order[id(row)], links)
    guides = partial(draw_guides, canvas, middles, top, canvas.y)
    canvas.behind(behind, lambda: canvas.in_view("intervals", guides))
    with _unspoken(canvas, links):
        canvas.on_axes(lambda: _boundaries(canvas, content.boundaries, top))
        canvas.on_axes(lambda: _breaks(canvas, content, top))
        if content.track is not None:
            section = content.track_node.id if content.track_node else ""
            draw_track(canvas, content.track, section=section)
        bottom = canvas.y + 8
        canvas.on_axes(lambda: draw_axis(canvas))
        draw_clock(canvas, content.voice.clock)
        canvas.on_axes(lambda: _findings(canvas, content.findings))
    if links:
        canvas.parts.append(
            f'<line class="now" x1="0" x2="0" y1="{top:.1f}" y2="{bottom:.1f}"/>'
        )
    return canvas, groups


def _is_ordered(content: Content, row: Row) -> bool:
    """Return whether a sentence names a row as the first or the last of its quantity."""
    # Concepts of two extractors have one quantity by name.
    paths = [node.path for node in content.nodes if node.id == row.section]
    return any(
        row.layer in (claim.subject.layer, claim.beside[0].name)
        for claim in content.claims
        if claim.kind is Kind.BEFORE
        and claim.subject.node in paths
        and claim.subject.quantity == row.variable
    )


def _unspoken(canvas: Canvas, links: bool) -> AbstractContextManager[None]:
    """Keep what is appended from screen readers, to whom each row says all of itself."""
    return canvas.tagged("g", 'aria-hidden="true"') if links else nullcontext()


def _boundaries(canvas: Canvas, marks: Sequence[RegimeMark], top: float) -> None:
    """Draw a hairline through all rows, and over them a bar as long as its interval."""
    for mark in marks:
        x = canvas.x_of_step(mark.step)
        spread = interval_text(mark.low, mark.high)
        at = with_interval(mark.step, mark.low, mark.high)
        words = f"{sentence_start(mark.label)} at {{step}} {at}"
        canvas.lines("boundary", [[(x, top), (x, canvas.y)]], words)
        if spread:
            ends = [(canvas.x_of_step(end), top) for end in (mark.low, mark.high)]
            canvas.lines("boundary-interval", [ends])


def _breaks(canvas: Canvas, content: Content, top: float) -> None:
    """Draw a line through all rows before each step at which another run may begin."""
    for finding in content.findings:
        if (
            finding.kind in BREAKS
            and finding.steps
            and finding.steps[0] in content.steps[1:]
        ):
            at = list(content.steps).index(finding.steps[0])
            x = (
                sum(canvas.x_of_step(step) for step in content.steps[at - 1 : at + 1])
                / 2
            )
            canvas.lines(
                "restart", [[(x, top), (x, canvas.y)]], sentence_start(finding.message)
            )


def _wrapped(canvas: Canvas, title: str, style: str) -> str:
    """Put the parts into an SVG element; a standalone one has a margin, paper and its own style."""
    layout = canvas.layout
    margin = MARGIN if style else 0
    width = layout.width + 2 * margin
    height = math.ceil(canvas.y + 6) + 2 * margin
    role = "img" if style else "grid"
    head = f'viewBox="{-margin} {-margin} {width:g} {height}" role="{role}"'
    paper = ""
    if style:
        head += f' width="{width:g}" height="{height}"'
        paper = (
            f"<style>{style}</style>"
            f'<rect class="paper" x="{-margin}" y="{-margin}" width="{width:g}" height="{height}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart chart-{layout.name}" {head} '
        f'font-size="{layout.font}" aria-label="{escape(f"Developmental chart: {title}")}">'
        f"{paper}{canvas.svg}</svg>"
    )


def _notices(content: Content, groups: Sequence[RowGroup]) -> tuple[str, ...]:
    notices = []
    shown = set(map(id, chain.from_iterable(group.rows for group in groups)))
    lines = sum(len(group.rows) for group in groups if group.folded)
    count = len(shown) - lines
    of = len(content.rows) - lines
    if count < of:
        notices.append(
            CAPTIONS["measures shown"].format(
                some=plural(count, "measure"), all=f"{of:,}"
            )
        )
    if len(content.steps) > MAX_COLUMNS:
        notices.append(
            CAPTIONS["cells shown"].format(
                some=MAX_COLUMNS, all=plural(len(content.steps), "step")
            )
        )
    return tuple(notices)


def draw_track(
    canvas: Canvas,
    track: Track,
    levels: Mapping[str, float] = MappingProxyType({}),
    section: str = "",
) -> None:
    """Draw the loss as a thin line with its first and last value, over lines at named levels.

    On the page its name leads to its `section`.
    A level that would press the line into a fifth is written over it, with an arrow.
    """
    layout = canvas.layout
    top = canvas.y + 16
    height = 44.0
    good = np.flatnonzero(np.isfinite(track.values))
    low, high = value_span(track.values, levels.values())
    ys = top + height * (high - track.values) / ((high - low) or 1.0)

    def curve() -> None:
        canvas.lines(
            "curve", stretches(canvas.x(canvas.scale.positions(track.steps)), ys)
        )

    cut = []
    for words, level in levels.items():
        if not low <= level <= high and math.isfinite(level):
            cut.append(with_arrow(f"{words} {number(level, 0.1)}", level, (low, high)))
        elif math.isfinite(level):
            y = top + height * (high - level) / ((high - low) or 1.0)
            canvas.lines(
                "boundary",
                [[(layout.left, y), (layout.width - layout.right, y)]],
                words,
            )
    canvas.on_axes(curve)
    if cut:
        words = ", ".join(cut)
        canvas.text(layout.width - layout.right, top - 4, words, "note end")
    middle = top + height / 2
    title = truncate(track.title, layout.label_characters)
    with canvas.leading(f'href="#{section}"'):
        canvas.text(0, middle, title, "name", track.title)
    if track.units and not layout.narrow:
        canvas.text(0, middle + 14, truncate(track.units, 40), "note")
    for x, i in ((layout.left - 10, good[0]), (layout.width, good[-1])):
        canvas.text(x, float(ys[i]) + 4, number(float(track.values[i])), "note end")
    canvas.y = top + height + 4


def stretches(xs: np.ndarray, ys: np.ndarray) -> list[Points]:
    """Return the stretches of a line without missing values."""
    is_finite = np.isfinite(ys)
    starts = np.flatnonzero(np.diff(is_finite.astype(int))) + 1
    parts = zip(np.split(xs, starts), np.split(ys, starts), strict=True)
    return [
        list(zip(x.tolist(), y.tolist(), strict=True))
        for x, y in parts
        if np.isfinite(y[0])
    ]


def draw_clock(canvas: Canvas, clock: str) -> None:
    """Name the step axis, left of its numbers."""
    layout = canvas.layout
    name = clock.removeprefix("training ") if layout.narrow else clock
    canvas.text(layout.left - 10, canvas.y - 4, name, "tick end")


def draw_axis(canvas: Canvas) -> None:
    """Draw the step axis with its ticks and the break after step 0."""
    layout = canvas.layout
    y = canvas.y + 8
    ticks = canvas.scale.ticks()
    line = [(layout.left, y), (layout.left + layout.plot_width, y)]
    marks = []
    for tick in ticks:
        x = float(canvas.x(tick.position))
        marks.append([(x, y), (x, y + (3 if tick.rank == 9 else 5))])
    canvas.lines("axis", [line, *marks])
    base = y + 6 + layout.font
    length = layout.plot_width / (canvas.high - canvas.low)
    for tick in pick_ticks(ticks, length, 0.58 * layout.font):
        canvas.text(float(canvas.x(tick.position)), base, tick.label, "tick middle")
    if canvas.scale.breaks_at_zero:
        x = float(canvas.x(0.04))
        left = [(x - 4, y + 4), (x, y - 4)]
        right = [(x, y + 4), (x + 4, y - 4)]
        canvas.areas("break", [[*left, *right[::-1]]])
        canvas.lines("axis", [left, right])
    canvas.y = y + 10 + layout.font


def _findings(canvas: Canvas, findings: Sequence[Finding]) -> None:
    """Draw one small triangle under the axis at every step that the audit names."""
    marked: dict[int, list[str]] = {}
    for finding in findings:
        for step in finding.steps:
            marked.setdefault(step, []).append(finding.message)
    if not marked:
        return
    y = canvas.y + 12
    for step, messages in sorted(marked.items()):
        x = canvas.x_of_step(step)
        title = f"{{Step}} {step:,}: {' '.join(messages)}"
        canvas.areas("finding", [[(x - 5, y), (x + 5, y), (x, y - 8)]], title)
    canvas.text(canvas.layout.left - 10, y, "audit", "warn end")
    canvas.y = y + 4
