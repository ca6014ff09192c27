"""The rows of the developmental chart: their marks, and the legend that explains them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from html import escape

import numpy as np

from ...words.formats import step_text
from ...words.labels import truncate
from ...words.row_words import control_half_steps, half_words, spoken, values_words
from ...words.rows import Row
from ..colours import LEVELS
from .canvas import GAP, Canvas, ChartLayout, wrapped
from .groups import RowGroup
from .marks import draw_legend_of_marks, draw_marks

MAX_COLUMNS = 220  # steps drawn as cells; more would be narrower than three pixels

HOW_TO_READ = "how-to-read"  # the place of the page that says more of the marks

MISSING = -2
HATCHED = -1

OVERSHOOT = 0.05  # share of the whole change beyond the first or the last value that a cell shows


def draw_legend(canvas: Canvas, rows: Sequence[Row]) -> None:
    """Explain colour, hatch and marks of the cells, and the marks of the forest plot.

    On the page it leads to what says more of them.
    """
    top = canvas.y
    ends = []
    for view, draw in (
        ("cells", _legend_of_cells),
        ("intervals", draw_legend_of_marks),
    ):
        canvas.y = top
        with canvas.leading(f'href="#{HOW_TO_READ}"'):
            canvas.in_view(view, partial(draw, canvas, rows))
        ends.append(canvas.y)
    layout = canvas.layout
    if any(end_words(row, layout) for row in rows):
        place = layout.left + layout.plot_width + GAP
        canvas.text(place, layout.font, "first → last value", "note")
    canvas.y = max(ends)


def _legend_of_cells(canvas: Canvas, rows: Sequence[Row]) -> None:
    layout = canvas.layout
    controlled = any(control_half_steps(row) for row in rows)
    em = layout.font
    x = 0.0
    y = layout.font
    shade = 3.0
    canvas.text(x, y, "First value", "note")
    x += 5.6 * em
    for level in range(LEVELS):
        canvas.box(f"q{level}", x + level * shade, y - 9, shade + 0.3, 10)
    x += LEVELS * shade + 6
    canvas.text(x, y, "last value", "note")
    x += 6 * em
    if layout.narrow:
        x = 0.0
        y = y + 1.6 * em
    canvas.box("frame", x, y - 9, 22, 10)
    canvas.text(x + 28, y, "within noise or chance", "note")
    if not layout.narrow:
        x += 28 + 11.5 * em
        canvas.whisker(x, y - 4, x + 13, x + 26)
        canvas.text(x + 32, y, "half-change {point}, with interval", "note")
        x += 32 + 15.2 * em
    else:
        x += 28 + 11.6 * em
    if controlled:
        canvas.open_whisker(y - 4, [x, x + 18])
        words = "controls’ half-change {point}" if layout.narrow else "of controls"
        canvas.text(x + 26, y, words, "note")
    if not layout.narrow and any(map(half_words, rows)):
        canvas.text(layout.width, y, "half-change {point}", "note end")
    canvas.y = y + 8
    if any((_over(row) | _under(row)).any() for row in rows):
        _legend_of_overshoot(canvas)


def _legend_of_overshoot(canvas: Canvas) -> None:
    """Explain the lines in cells that lie beyond the last or the first value."""
    layout = canvas.layout
    em = layout.font
    x = 0.0
    y = canvas.y + em - 2
    for shade, line, at, words in (
        (LEVELS - 1, "over", y - 6.5, "beyond last value"),
        (
            0,
            "under",
            y - 1.5,
            "first the other way"
            if layout.narrow
            else "first the other way: beyond first value",
        ),
    ):
        canvas.box(f"q{shade}", x, y - 9, 22, 10)
        canvas.lines(line, [[(x, at), (x + 22, at)]])
        canvas.text(x + 28, y, words, "note")
        x += 28 + (12 if layout.narrow else 11.5) * em
    canvas.y = y + 4


def _over(row: Row) -> np.ndarray:
    return np.asarray((row.progress > 1 + OVERSHOOT) & _coloured(row))


def _under(row: Row) -> np.ndarray:
    return np.asarray((row.progress < -OVERSHOOT) & _coloured(row))


def _coloured(row: Row) -> np.ndarray:
    """Return which cells lie beyond noise; none of a row that chance, as judged, explains."""
    return row.distinct & (row.changed or not row.judgeable)


def draw_heading(canvas: Canvas, group: RowGroup, places: Sequence[str]) -> None:
    """Write what the rows under it have in common.

    On the page it leads to the section of the first row, and what stands for folded rows to the
    table that has them, at `places`.
    """
    canvas.y += canvas.layout.font + 8
    with canvas.leading(f'href="#{group.rows[0].section}"'):
        canvas.text(0, canvas.y, group.title, "group")
    canvas.y += 6
    if group.folded:
        layout = canvas.layout
        cut = truncate(group.summary, int(layout.width / 7))
        lines = wrapped(canvas.fill(group.summary), layout.width / layout.font, 3)
        with canvas.leading(f'href="#{places[0]}" data-folded="{" ".join(places)}"'):
            for line in lines or [cut]:
                canvas.y += layout.font
                canvas.text(0, canvas.y, line, "note")
        canvas.y += 4


def draw_row(canvas: Canvas, row: Row, index: int, links: bool) -> None:
    """Draw labels, cells, the mark of the half-change step and the step in words."""
    layout = canvas.layout
    top = canvas.y
    height = layout.row - 2.5
    base = top + height / 2 + layout.font * 0.35
    canvas.within = f"row {'told' if row.changed else 'still'}"
    head = f'class="{canvas.within}" data-row="{index}"'
    canvas.parts.append(f"<g {head}{_GRID_ROW if links else '>'}")
    if links:
        # One stop for the tab key: the page moves it from row to row by the arrow keys.
        words = escape(canvas.fill(spoken(row)))
        canvas.parts.append(
            f'<a href="#{row.section}" tabindex="-1" aria-label="{words}">'
        )
    canvas.box("hit", 0, top - 1.25, layout.width, layout.row)
    _labels(canvas, row, base)
    canvas.on_axes(lambda: _on_axis(canvas, row, top, height))
    if words := value_words(row, layout):
        canvas.text(layout.width, base, words, "value end")
    if ends := end_words(row, layout):
        canvas.text(
            layout.left + layout.plot_width + GAP, base, ends, "value", row.measure
        )
    canvas.parts.append("</a></g></g>" if links else "</g>")
    canvas.within = ""
    canvas.y += layout.row


_GRID_ROW = ' role="row"><g role="gridcell">'


def value_words(row: Row, layout: ChartLayout) -> str:
    """Return the half-change step as it stands beside a row; without its interval on a phone."""
    words = half_words(row)
    return step_text(row.half_step) if words and layout.narrow else words


def end_words(row: Row, layout: ChartLayout) -> str:
    """Return the first and the last value of a row that changed; a phone has no room for them.

    Those of several runs are means, which stand below the median of their steps: they are left out.
    """
    if layout.narrow or row.runs or not row.changed:
        return ""
    return values_words(row.first_value, row.last_value, " → ")


def _on_axis(canvas: Canvas, row: Row, top: float, height: float) -> None:
    """Draw what of a row lies on the step axis; what did not change has marks in one view only."""
    canvas.in_view("cells", lambda: _cells(canvas, row, top, height))
    if row.changed:
        draw_marks(canvas, row, top, height)
    else:
        canvas.in_view("intervals", lambda: draw_marks(canvas, row, top, height))


def _labels(canvas: Canvas, row: Row, base: float) -> None:
    """Write the quantity at the left and the layer beside the cells."""
    layout = canvas.layout
    layer = row.short_layer.removeprefix("layer ") if layout.narrow else row.short_layer
    layer = truncate(layer, 18)
    full = f"{row.name}, {row.measure}".rstrip(", ")
    room = max(layout.label_characters - len(layer), 8)
    name = f"{row.quantity}, {row.measure}"
    if len(name) > room or row.measure in ("", row.quantity):
        name = truncate(row.quantity, room)
    canvas.text(0, base, name, "name", full)
    if layer:
        canvas.text(layout.left - 10, base, layer, "layer end", full)


def _cells(canvas: Canvas, row: Row, top: float, height: float) -> None:
    """Draw one path for each shade of the row."""
    keep = np.unique(
        np.linspace(0, len(row.steps) - 1, min(len(row.steps), MAX_COLUMNS))
        .round()
        .astype(int)
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
    for style, beyond, y in (
        ("over", _over, top + 2.5),
        ("under", _under, bottom - 2.5),
    ):
        runs = [
            [(left, y), (right, y)] for left, right in _runs(edges, beyond(row)[keep])
        ]
        if runs:
            canvas.lines(style, runs)


def _shades(row: Row) -> np.ndarray:
    """Shade of every cell: missing, hatched (within noise or chance), or 0 to LEVELS - 1."""
    missing = ~np.isfinite(row.progress)
    shades = np.round(np.clip(np.nan_to_num(row.progress), 0, 1) * (LEVELS - 1)).astype(
        int
    )
    return np.where(missing, MISSING, np.where(_coloured(row), shades, HATCHED))


def _runs(edges: np.ndarray, member: np.ndarray) -> Iterable[tuple[float, float]]:
    """Join neighbouring cells of one shade that touch."""
    places = np.flatnonzero(member)
    if not len(places):
        return
    apart = (np.diff(places) > 1) | (
        edges[places[1:], 0] - edges[places[:-1], 1] >= 0.05
    )
    for run in np.split(places, np.flatnonzero(apart) + 1):
        yield float(edges[run[0], 0]), float(edges[run[-1], 1])
