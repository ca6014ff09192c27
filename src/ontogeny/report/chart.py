"""The developmental chart as SVG: what changed when, for the whole run, in one figure.

One drawing serves the page (wide and narrow) and the README (standalone, with its own colours).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from .canvas import WIDE, Canvas, ChartLayout, Points
from .colours import LEVELS
from .content import Content, Finding, RegimeMark, Track
from .formats import interval_text, number, plural, step_text, with_interval
from .groups import MAX_ROWS, RowGroup, arrange
from .labels import truncate
from .row_words import control_half_steps, half_words, spoken
from .rows import Row
from .scales import pick_ticks
from .sentences import sentence_start
from .verdict import verdict

MAX_COLUMNS = 220
"""Steps drawn as cells; more would be narrower than three pixels."""

MISSING, HATCHED = -2, -1


@dataclass(frozen=True)
class Drawing:
    """An SVG element; ``plot`` says where its step axis lies: left, width, first and last place."""

    svg: str
    plot: tuple[float, float, float, float]
    notices: tuple[str, ...]


MARGIN = 20
"""Around a chart that stands alone."""


def draw_chart(content: Content, layout: ChartLayout = WIDE, style: str = "") -> Drawing:
    """Return the chart; `style` is put into a standalone drawing, which then has no links."""
    canvas, groups = lay_chart(content, layout, links=not style)
    plot = (layout.left, layout.plot_width, canvas.low, canvas.high)
    return Drawing(_wrapped(canvas, content.title, style), plot, _notices(content, groups))


def lay_chart(
    content: Content, layout: ChartLayout, links: bool = False
) -> tuple[Canvas, list[RowGroup]]:
    """Return all marks of the chart, and the rows that are shown; `links` are for the page."""
    canvas = Canvas(layout, content.steps)
    order = {id(row): i for i, row in enumerate(content.rows)}
    groups = arrange(content.rows, keep=[order[id(row)] for row in verdict(content).named])
    if groups:
        _legend(canvas, any(control_half_steps(row) for row in content.rows))
    top = canvas.y + 8
    for group in groups:
        _heading(canvas, group)
        for row in group.rows:
            _row(canvas, row, order[id(row)], links)
    for mark in content.boundaries:
        _boundary(canvas, mark, top)
    if content.track is not None:
        _track(canvas, content.track)
    bottom = canvas.y + 8
    _axis(canvas)
    _findings(canvas, content.findings)
    if links:
        canvas.parts.append(f'<line class="now" x1="0" x2="0" y1="{top:.1f}" y2="{bottom:.1f}"/>')
    return canvas, groups


def _boundary(canvas: Canvas, mark: RegimeMark, top: float) -> None:
    """Draw a hairline through all rows, and over them a bar as long as its interval."""
    x, spread = canvas.x_of_step(mark.step), interval_text(mark.low, mark.high)
    words = f"{sentence_start(mark.label)} at step {with_interval(mark.step, mark.low, mark.high)}"
    canvas.lines("boundary", [[(x, top), (x, canvas.y)]], words)
    if spread:
        ends = [(canvas.x_of_step(end), top) for end in (mark.low, mark.high)]
        canvas.lines("boundary-interval", [ends])


def _wrapped(canvas: Canvas, title: str, style: str) -> str:
    """Put the parts into an SVG element; a standalone one has a margin, paper and its own style."""
    layout, margin = canvas.layout, MARGIN if style else 0
    width, height = layout.width + 2 * margin, math.ceil(canvas.y + 6) + 2 * margin
    head = f'viewBox="{-margin} {-margin} {width:g} {height}" role="{"img" if style else "group"}"'
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
    shown = sum(len(group.rows) for group in groups)
    if shown < len(content.rows):
        notices.append(
            f"{plural(shown, 'row')} of {len(content.rows):,} shown: above {MAX_ROWS}, layers are "
            "thinned evenly within each quantity. The table below holds all."
        )
    if len(content.steps) > MAX_COLUMNS:
        notices.append(f"{MAX_COLUMNS} of {plural(len(content.steps), 'step')} shown as cells.")
    return tuple(notices)


def _legend(canvas: Canvas, controlled: bool) -> None:
    """Explain colour, hatch, the mark of the half-change step and that of the controls'."""
    layout = canvas.layout
    em = layout.font
    x, y, shade = layout.legend_left, layout.font, 3.0
    canvas.text(x, y, "First value", "note")
    x += 5.6 * em
    for level in range(LEVELS):
        canvas.box(f"q{level}", x + level * shade, y - 9, shade + 0.3, 10)
    x += LEVELS * shade + 6
    canvas.text(x, y, "last value", "note")
    x += 6 * em
    if layout.narrow:
        x, y = 0.0, y + 1.6 * em
    canvas.box("frame", x, y - 9, 22, 10)
    canvas.text(x + 28, y, "within noise or chance", "note")
    if not layout.narrow:
        x += 28 + 11.5 * em
        canvas.whisker(x, y - 4, x + 13, x + 26)
        canvas.text(x + 32, y, "half-change step, with interval", "note")
        x += 32 + 15.2 * em
    else:
        x += 28 + 11.6 * em
    if controlled:
        canvas.open_whisker(y - 4, [x, x + 18])
        words = "controls’ half-change step" if layout.narrow else "of controls"
        canvas.text(x + 26, y, words, "note")
    if not layout.narrow:
        canvas.text(layout.width, y, "half-change step", "note end")
    canvas.y = y + 8


def _heading(canvas: Canvas, group: RowGroup) -> None:
    title = group.title
    if canvas.layout.narrow:
        title = title.split(" (")[0].split(", ")[0]
    canvas.y += canvas.layout.font + 8
    canvas.text(0, canvas.y, title, "group")
    canvas.y += 6


def _row(canvas: Canvas, row: Row, index: int, links: bool) -> None:
    """Draw labels, cells, the mark of the half-change step and the step in words."""
    layout, top = canvas.layout, canvas.y
    height = layout.row - 2.5
    base = top + height / 2 + layout.font * 0.35
    canvas.within = f"row {'told' if row.changed else 'still'}"
    canvas.parts.append(f'<g class="{canvas.within}" data-row="{index}">')
    if links:
        canvas.parts.append(f'<a href="#{row.section}" aria-label="{escape(spoken(row))}">')
    canvas.box("hit", 0, top - 1.25, layout.width, layout.row)
    _labels(canvas, row, base)
    _cells(canvas, row, top, height)
    if row.changed:
        _half_change(canvas, row, top, height)
    if words := step_text(row.half_step) if layout.narrow and half_words(row) else half_words(row):
        canvas.text(layout.width, base, words, "value end")
    canvas.parts.append("</a></g>" if links else "</g>")
    canvas.within = ""
    canvas.y += layout.row


def _half_change(canvas: Canvas, row: Row, top: float, height: float) -> None:
    """Mark the half-change step, and below it those of the controls where there are any."""
    controls = [canvas.x_of_step(step) for step in control_half_steps(row)]
    y = top + height * (0.32 if controls else 0.5)
    if math.isfinite(row.half_step):
        at, ends = canvas.x_of_step(row.half_step), (row.half_step_low, row.half_step_high)
        low, high = (canvas.x_of_step(end) if math.isfinite(end) else at for end in ends)
        canvas.whisker(low, y, at, high)
    if controls:
        canvas.open_whisker(top + height * 0.78, controls)


def _labels(canvas: Canvas, row: Row, base: float) -> None:
    """Write the quantity at the left and the layer beside the cells."""
    layout = canvas.layout
    layer = row.short_layer.removeprefix("layer ") if layout.narrow else row.short_layer
    layer = truncate(layer, 18)
    full = row.name
    name = truncate(row.quantity, max(layout.label_characters - len(layer), 8))
    canvas.text(0, base, name, "name", full)
    if layer:
        canvas.text(layout.left - 10, base, layer, "layer end", full)


def _cells(canvas: Canvas, row: Row, top: float, height: float) -> None:
    """Draw one path for each shade of the row."""
    keep = np.unique(
        np.linspace(0, len(row.steps) - 1, min(len(row.steps), MAX_COLUMNS)).round().astype(int)
    )
    edges = canvas.x(canvas.scale.edges(row.steps[keep]))
    shades = _shades(row)[keep]
    styles = {MISSING: "missing", HATCHED: "hatched"}
    bottom = top + height
    for shade in sorted(set(shades.tolist())):
        outlines = [
            [(left, top), (right, top), (right, bottom), (left, bottom)]
            for left, right in _runs(edges, shades == shade)
        ]
        canvas.areas(styles.get(shade, f"q{shade}"), outlines)


def _shades(row: Row) -> np.ndarray:
    """Shade of every cell: missing, hatched (within noise or chance), or 0 to LEVELS - 1."""
    missing = ~np.isfinite(row.progress)
    share = np.clip(np.where(missing, 0.0, row.progress), 0, 1)
    shades = np.round(share * (LEVELS - 1)).astype(int)
    hatched = ~row.distinct if row.changed else np.ones_like(missing)
    return np.where(missing, MISSING, np.where(hatched, HATCHED, shades))


def _runs(edges: np.ndarray, member: np.ndarray) -> Iterable[tuple[float, float]]:
    """Join neighbouring cells of one shade that touch."""
    places = np.flatnonzero(member)
    apart = (np.diff(places) > 1) | (edges[places[1:], 0] - edges[places[:-1], 1] >= 0.05)
    for run in np.split(places, np.flatnonzero(apart) + 1):
        yield float(edges[run[0], 0]), float(edges[run[-1], 1])


def _track(canvas: Canvas, track: Track) -> None:
    """Draw the loss as a thin line with its first and last value."""
    layout, top, height = canvas.layout, canvas.y + 16, 44.0
    good = np.flatnonzero(np.isfinite(track.values))
    low, high = float(track.values[good].min()), float(track.values[good].max())
    xs = canvas.x(canvas.scale.positions(track.steps))
    ys = top + height * (high - track.values) / ((high - low) or 1.0)
    canvas.lines("curve", _stretches(xs, ys))
    middle = top + height / 2
    canvas.text(0, middle, truncate(track.title, layout.label_characters), "name", track.title)
    if track.units and not layout.narrow:
        canvas.text(0, middle + 14, truncate(track.units, 40), "note")
    for x, i in ((layout.left - 10, good[0]), (layout.width, good[-1])):
        canvas.text(x, float(ys[i]) + 4, number(float(track.values[i])), "note end")
    canvas.y = top + height + 4


def _stretches(xs: np.ndarray, ys: np.ndarray) -> list[Points]:
    """Return the stretches of a line without missing values."""
    known = np.isfinite(ys)
    starts = np.flatnonzero(np.diff(known.astype(int))) + 1
    parts = zip(np.split(xs, starts), np.split(ys, starts), strict=True)
    return [list(zip(x.tolist(), y.tolist(), strict=True)) for x, y in parts if np.isfinite(y[0])]


def _axis(canvas: Canvas) -> None:
    """Draw the step axis with its ticks and the break after step 0."""
    layout, y = canvas.layout, canvas.y + 8
    ticks = canvas.scale.ticks()
    line = [(layout.left, y), (layout.left + layout.plot_width, y)]
    marks = [
        [(x, y), (x, y + (3 if tick.rank == 9 else 5))]
        for tick in ticks
        for x in [float(canvas.x(tick.position))]
    ]
    canvas.lines("axis", [line, *marks])
    base = y + 6 + layout.font
    length = layout.plot_width / (canvas.high - canvas.low)
    for tick in pick_ticks(ticks, length, 0.58 * layout.font):
        canvas.text(float(canvas.x(tick.position)), base, tick.label, "tick middle")
    if canvas.scale.breaks_at_zero:
        x = float(canvas.x(0.04))
        left, right = [(x - 4, y + 4), (x, y - 4)], [(x, y + 4), (x + 4, y - 4)]
        canvas.areas("break", [[*left, *right[::-1]]])
        canvas.lines("axis", [left, right])
    name = "step" if layout.narrow else "training step"
    canvas.text(layout.left - 10, base, name, "tick end")
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
        title = f"Step {step:,}: {' '.join(messages)}"
        canvas.areas("finding", [[(x - 5, y), (x + 5, y), (x, y - 8)]], title)
    canvas.text(canvas.layout.left - 10, y, "audit", "warn end")
    canvas.y = y + 4
