"""The developmental chart as SVG: what developed when, for the whole run, in one figure.

One drawing serves the page (wide and narrow) and the README (standalone, with its own colours).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from .colours import LEVELS
from .content import Content, Track
from .formats import interval_text, number, plural, step_text
from .labels import truncate
from .rows import MAX_ROWS, Row, RowGroup, arrange
from .scales import StepScale, pick_ticks

__all__ = ["NARROW", "WIDE", "ChartLayout", "Drawing", "draw_chart"]

MAX_COLUMNS = 220
"""Steps drawn as cells; more would be narrower than two pixels."""


@dataclass(frozen=True)
class ChartLayout:
    """Sizes in SVG units of one form of the chart."""

    name: str
    width: float
    left: float
    right: float
    row: float
    font: float
    label_characters: int

    @property
    def plot_left(self) -> float:
        """Left end of the step axis."""
        return self.left

    @property
    def plot_width(self) -> float:
        """Length of the step axis."""
        return self.width - self.left - self.right


WIDE = ChartLayout("wide", 1060, 250, 128, 17, 12, 30)
NARROW = ChartLayout("narrow", 380, 132, 44, 16, 10.5, 21)


@dataclass(frozen=True)
class Drawing:
    """An SVG element and what a script needs to know about it."""

    svg: str
    height: float
    plot: tuple[float, float, float, float]
    row_tops: dict[int, float]
    notices: tuple[str, ...]


def draw_chart(content: Content, layout: ChartLayout = WIDE, style: str = "") -> Drawing:
    """Return the chart; `style` is put into a standalone drawing, which then has no links."""
    groups = arrange(content.rows)
    canvas = _Canvas(content, layout, links=not style)
    canvas.legend(groups)
    for group in groups:
        canvas.group(group)
    rows_bottom = canvas.y
    if content.track is not None:
        canvas.track(content.track)
    canvas.axis()
    return canvas.finish(rows_bottom, style, _notices(content, groups))


def _notices(content: Content, groups: Sequence[RowGroup]) -> tuple[str, ...]:
    notices = []
    hidden = sum(group.hidden for group in groups)
    if hidden:
        shown = sum(len(group.rows) for group in groups)
        notices.append(
            f"{plural(shown, 'row')} of {shown + hidden:,} shown: above {MAX_ROWS} rows, "
            "layers are thinned evenly within each quantity. The table below holds all."
        )
    if len(content.steps) > MAX_COLUMNS:
        notices.append(f"{MAX_COLUMNS} of {plural(len(content.steps), 'step')} shown as cells.")
    return tuple(notices)


class _Canvas:
    """Draws from top to bottom and remembers how far down it is."""

    def __init__(self, content: Content, layout: ChartLayout, links: bool) -> None:
        self.content = content
        self.layout = layout
        self.links = links
        self.scale = StepScale(content.steps, "log")
        edges = self.scale.edges(content.steps)
        self.low, self.high = float(edges.min()), float(edges.max())
        self.parts: list[str] = []
        self.row_tops: dict[int, float] = {}
        self.order = {id(row): i for i, row in enumerate(content.rows)}
        self.y = 0.0

    def x(self, places: np.ndarray | float) -> np.ndarray:
        """From a place between 0 and 1 on the step axis to SVG units."""
        share = (np.asarray(places) - self.low) / (self.high - self.low)
        return self.layout.plot_left + share * self.layout.plot_width

    def x_of_step(self, step: float) -> float:
        """SVG place of a step, kept inside the plot."""
        return float(self.x(np.clip(self.scale.positions([step])[0], self.low, self.high)))

    def legend(self, groups: Sequence[RowGroup]) -> None:
        """Explain colour, hatch and the mark of half-way."""
        if not groups:
            return
        narrow = self.layout.name == "narrow"
        x, y = (0.0 if narrow else self.layout.plot_left), self.layout.font
        self.text(x, y, "First value", "note")
        x += 5.6 * self.layout.font
        width = 3.0
        for level in range(LEVELS):
            self.parts.append(
                f'<rect class="q{level}" x="{x + level * width:.1f}" y="{y - 9:.1f}" '
                f'width="{width + 0.3}" height="10"/>'
            )
        x += LEVELS * width + 6
        self.text(x, y, "last value", "note")
        x += 6.0 * self.layout.font
        if narrow:
            x, y = 0.0, y + 1.6 * self.layout.font
        self.parts.append(
            f'<rect class="frame" fill="url(#hatch-{self.layout.name})" x="{x:.1f}" y="{y - 9:.1f}" '
            'width="22" height="10"/>'
        )
        self.text(x + 28, y, "within noise or chance", "note")
        x += 28 + 11.5 * self.layout.font
        if narrow:
            self.y = y + 6
            return
        self.half_way_mark(x, y - 4, x + 13, x + 26)
        self.text(x + 32, y, "half-way, with interval", "note")
        self.text(self.layout.width, y, "half-way at step", "note end")
        self.y = y + 8

    def group(self, group: RowGroup) -> None:
        """Draw a heading and its rows."""
        title = group.title
        if self.layout.name == "narrow":
            title = title.split(" (")[0].split(", ")[0]
        self.y += self.layout.font + 8
        self.text(0, self.y, title, "group")
        self.y += 6
        for row in group.rows:
            self.row(row)

    def row(self, row: Row) -> None:
        """Draw label, cells, half-way mark and the step in words."""
        layout, index = self.layout, self.order[id(row)]
        top, height = self.y, layout.row - 2.5
        base = top + height / 2 + layout.font * 0.35
        self.row_tops[index] = top
        self.parts.append(f'<g class="row {_state(row)}" data-row="{index}">')
        if self.links:
            self.parts.append(
                f'<a href="#{row.section}" aria-label="{escape(_spoken(row), quote=True)}">'
            )
        self.parts.append(
            f'<rect class="hit" x="0" y="{top - 1.25:.1f}" width="{layout.width}" height="{layout.row}"/>'
        )
        self.labels(row, base)
        self.cells(row, top, height)
        if row.developed and math.isfinite(row.half_step):
            self.half_way(row, top + height / 2)
            spread = interval_text(row.half_step_low, row.half_step_high)
            text = step_text(row.half_step)
            if spread and layout.name == "wide":
                text += f" ({spread})"
            self.text(layout.width, base, text, "value end")
        self.parts.append("</a></g>" if self.links else "</g>")
        self.y += layout.row

    def labels(self, row: Row, base: float) -> None:
        """The quantity at the left, the layer beside the cells."""
        layout = self.layout
        room = layout.label_characters - len(row.short_layer)
        name = truncate(row.quantity, max(room, 8))
        full = f"<title>{escape(row.label or row.quantity)}</title>"
        self.text(0, base, name, "name", full)
        if row.short_layer:
            self.text(layout.left - 10, base, truncate(row.short_layer, 18), "layer end", full)

    def cells(self, row: Row, top: float, height: float) -> None:
        """One path for each shade of the row; a missing value stays empty."""
        keep = _thinned(len(row.steps))
        edges = self.x(self.scale.edges(row.steps[keep]))
        shades = _shades(row)[keep]
        box = f"h{{width:.1f}}v{height:.1f}h-{{width:.1f}}z"
        for shade in sorted(set(shades.tolist())):
            path = "".join(
                f"M{left:.1f} {top:.1f}" + box.format(width=right - left)
                for left, right in _runs(edges, shades == shade)
            )
            self.parts.append(f'<path {self.fill(shade)} d="{path}"/>')

    def fill(self, shade: int) -> str:
        """Class or pattern of a shade: -1 is hatched, -2 missing."""
        if shade == -2:
            return 'class="missing"'
        if shade == -1:
            return f'class="hatched" fill="url(#hatch-{self.layout.name})"'
        return f'class="q{shade}"'

    def half_way(self, row: Row, middle: float) -> None:
        """Draw the mark at the half-way step with its interval."""
        at = self.x_of_step(row.half_step)
        low, high = (
            self.x_of_step(v) if math.isfinite(v) else at
            for v in (row.half_step_low, row.half_step_high)
        )
        self.half_way_mark(low, middle, at, high)

    def half_way_mark(self, low: float, y: float, at: float, high: float) -> None:
        """A whisker with a dot, in ink with a halo of paper: legible on every shade."""
        shape = f"M{low:.1f} {y:.1f}H{high:.1f}"
        self.parts.append(
            f'<path class="halo" d="{shape}"/><circle class="halo-dot" cx="{at:.1f}" cy="{y:.1f}" r="3.6"/>'
            f'<path class="whisker" d="{shape}"/><circle class="dot" cx="{at:.1f}" cy="{y:.1f}" r="2.4"/>'
        )

    def track(self, track: Track) -> None:
        """Draw the loss curve as a thin line with its first and last value."""
        top, height = self.y + 16, 44.0
        values = track.values
        good = np.isfinite(values)
        low, high = float(values[good].min()), float(values[good].max())
        span = (high - low) or 1.0
        xs = self.x(self.scale.positions(track.steps))
        ys = top + height * (high - values) / span
        self.parts.append(f'<path class="curve" d="{_line(xs, ys)}"/>')
        first, last = values[good][0], values[good][-1]
        middle = top + height / 2
        self.text(0, middle, truncate(track.title, self.layout.label_characters), "name")
        if track.units and self.layout.name == "wide":
            self.text(0, middle + 14, truncate(track.units, 40), "note")
        self.text(self.layout.left - 10, float(ys[good][0]) + 4, number(float(first)), "note end")
        self.text(self.layout.width, float(ys[good][-1]) + 4, number(float(last)), "note end")
        self.y = top + height + 4

    def axis(self) -> None:
        """The step axis with ticks, the break after step 0 and the audit's marks."""
        y = self.y + 8
        left, right = self.layout.plot_left, self.layout.plot_left + self.layout.plot_width
        self.parts.append(f'<path class="axis" d="M{left} {y:.1f}H{right:.1f}"/>')
        ticks = self.scale.ticks()
        marks = "".join(
            f"M{float(self.x(t.position)):.1f} {y:.1f}v{3 if t.rank == 9 else 5}" for t in ticks
        )
        self.parts.append(f'<path class="axis" d="{marks}"/>')
        length = self.layout.plot_width / (self.high - self.low)
        for tick in pick_ticks(ticks, length, 0.58 * self.layout.font):
            self.text(
                float(self.x(tick.position)), y + 6 + self.layout.font, tick.label, "tick middle"
            )
        if self.scale.breaks_at_zero:
            x = float(self.x(self.scale.positions([0])[0] + 0.04))
            self.parts.append(
                f'<path class="break" d="M{x - 4:.1f} {y + 4:.1f}l4 -8h4l-4 8z"/>'
                f'<path class="axis" d="M{x - 4:.1f} {y + 4:.1f}l4 -8M{x:.1f} {y + 4:.1f}l4 -8"/>'
            )
        name = "step" if self.layout.name == "narrow" else "training step"
        self.text(self.layout.left - 10, y + 6 + self.layout.font, name, "tick end")
        self.y = y + 10 + self.layout.font
        self.findings()

    def findings(self) -> None:
        """One small triangle under the axis at every step that the audit names."""
        marked: dict[int, list[str]] = {}
        for finding in self.content.findings:
            for step in finding.steps:
                marked.setdefault(step, []).append(finding.message)
        if not marked:
            return
        y = self.y + 4
        for step, messages in sorted(marked.items()):
            x = self.x_of_step(step)
            text = f"Step {step:,}: " + " ".join(messages)
            self.parts.append(
                f'<path class="finding" data-finding="{step}" d="M{x - 5:.1f} {y + 8:.1f}h10l-5 -8z">'
                f"<title>{escape(text)}</title></path>"
            )
        self.text(self.layout.left - 10, y + 8, "audit", "warn end")
        self.y = y + 12

    def boundaries(self, top: float, bottom: float) -> None:
        """Regime boundaries as hairlines through the chart."""
        for step in self.content.boundaries:
            x = self.x_of_step(step)
            self.parts.append(
                f'<path class="boundary" d="M{x:.1f} {top:.1f}V{bottom:.1f}">'
                f"<title>Regime boundary at step {step_text(step)}</title></path>"
            )

    def text(self, x: float, y: float, words: str, style: str, extra: str = "") -> None:
        """Escaped text."""
        self.parts.append(
            f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}{extra}</text>'
        )

    def finish(self, rows_bottom: float, style: str, notices: tuple[str, ...]) -> Drawing:
        """Wrap the parts in an SVG element of the height that was reached."""
        layout, height = self.layout, math.ceil(self.y + 6)
        top = min(self.row_tops.values(), default=0.0) - 4
        self.boundaries(top, rows_bottom)
        if self.links:
            self.parts.append(
                f'<line class="now" x1="0" x2="0" y1="{top:.1f}" y2="{rows_bottom + 72:.1f}" '
                'visibility="hidden"/>'
            )
        title = escape(f"Developmental chart: {self.content.title}")
        margin = 0 if self.links else 20
        box = f"{-margin} {-margin} {layout.width + 2 * margin:g} {height + 2 * margin}"
        paper = (
            f"<style>{style}</style>"
            f'<rect class="paper" x="{-margin}" y="{-margin}" width="100%" height="100%"/>'
            if style
            else ""
        )
        size = (
            f' width="{layout.width + 2 * margin:g}" height="{height + 2 * margin}"'
            if style
            else ""
        )
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart chart-{layout.name}" '
            f'viewBox="{box}"{size} font-size="{layout.font}" role="{"group" if self.links else "img"}" '
            f'aria-label="{title}">{paper}'
            f'<defs><pattern id="hatch-{layout.name}" width="5" height="5" '
            'patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
            '<path class="hatch-line" d="M0 0V5"/></pattern></defs>'
            + "".join(self.parts)
            + "</svg>"
        )
        plot = (layout.plot_left, layout.plot_width, self.low, self.high)
        return Drawing(svg, height, plot, self.row_tops, notices)


def _state(row: Row) -> str:
    if row.role == "motion":
        return "motion"
    return "developed" if row.developed else "undeveloped"


def _spoken(row: Row) -> str:
    name = row.label or row.quantity
    if not row.developed:
        return f"{name}: not told apart from chance and noise"
    return f"{name}: half-way at step {step_text(row.half_step)}"


def _thinned(count: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, MAX_COLUMNS)).round().astype(int))


def _shades(row: Row) -> np.ndarray:
    """Shade of every cell: -2 missing, -1 not distinct from noise or chance, else 0 to LEVELS - 1."""
    missing = ~np.isfinite(row.progress)
    share = np.clip(np.where(missing, 0.0, row.progress), 0, 1)
    shades = np.round(share * (LEVELS - 1)).astype(int)
    hatched = ~row.distinct if row.developed else np.ones_like(missing)
    return np.where(missing, -2, np.where(hatched, -1, shades))


def _runs(edges: np.ndarray, member: np.ndarray) -> Iterable[tuple[float, float]]:
    """Join neighbouring cells of one shade that touch."""
    start: int | None = None
    for i in range(len(member)):
        if not member[i]:
            continue
        start = i if start is None else start
        touches = i + 1 < len(member) and member[i + 1] and edges[i + 1, 0] - edges[i, 1] < 0.05
        if not touches:
            yield float(edges[start, 0]), float(edges[i, 1])
            start = None


def _line(xs: np.ndarray, ys: np.ndarray) -> str:
    """A polyline that is broken at missing values."""
    path, pen = [], "M"
    for x, y in zip(xs, ys, strict=True):
        if not math.isfinite(y):
            pen = "M"
            continue
        path.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return "".join(path)
