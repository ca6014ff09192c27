"""Half-change steps on the rows of the chart: of the run or runs, and of the control runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain

from ...words.catalogue.captions import CAPTIONS
from ...words.row_words import control_half_steps
from ...words.rows import Row
from ..scales import pick_ticks
from .canvas import Canvas

SAMPLE = 26  # length of a mark in the legend


def has_marks(row: Row) -> bool:
    """Return whether there is a half-change step to draw, of the row or of a control run."""
    return math.isfinite(row.half_step) or bool(control_half_steps(row))


def draw_marks(canvas: Canvas, row: Row, top: float, height: float) -> None:
    """Mark the half-change step of each run, and below those of the controls where there are any.

    A mark is open where the change lies within a null. Of several runs one is drawn in ink, with
    its interval: the first, or the one that is chosen in the page.
    """
    controls = [canvas.x_of_step(step) for step in control_half_steps(row)]
    y = top + height * (0.32 if controls else 0.5)
    if controls:
        canvas.open_whisker(top + height * 0.78, controls)
    if not row.runs:
        _mark(canvas, row, y, row.firm)
        return
    for k, run in reversed(list(enumerate(row.runs))):
        with _of_run(canvas, k):
            # No halo: the dots of other runs stay visible under the interval.
            _mark(
                canvas,
                run.row,
                y,
                run.firm,
                is_chosen=k == 0 or canvas.linked,
                halo=False,
            )


def _of_run(canvas: Canvas, k: int) -> AbstractContextManager[None]:
    if not canvas.linked:
        return nullcontext()
    chosen = " chosen" if k == 0 else ""
    return canvas.tagged("g", f'class="of-run{chosen}" data-run="{k}"')


def _mark(
    canvas: Canvas,
    row: Row,
    y: float,
    firm: bool,
    is_chosen: bool = True,
    halo: bool = True,
) -> None:
    if not math.isfinite(row.half_step):
        return
    at = canvas.x_of_step(row.half_step)
    ends = (row.half_step_low, row.half_step_high)
    low, high = (canvas.x_of_step(end) if math.isfinite(end) else at for end in ends)
    if is_chosen:
        canvas.whisker(low, y, at, high, "dot" if firm else "open-dot", halo)
    else:
        canvas.dot("run-dot" if firm else "run-open-dot", at, y)


def draw_guides(
    canvas: Canvas, rows: Sequence[float], top: float, bottom: float
) -> None:
    """Draw hairlines along the rows at heights `rows`, and through the numbers of the step axis."""
    layout = canvas.layout
    right = layout.left + layout.plot_width
    canvas.lines("guide", [[(layout.left, y), (right, y)] for y in rows])

    def upright() -> None:
        length = layout.plot_width / (canvas.high - canvas.low)
        ticks = pick_ticks(canvas.scale.ticks(), length, 0.58 * layout.font)
        xs = [float(canvas.x(tick.position)) for tick in ticks]
        canvas.lines("guide", [[(x, top), (x, bottom)] for x in xs])

    canvas.on_axes(upright)


def draw_legend_of_marks(canvas: Canvas, rows: Sequence[Row]) -> None:
    """Explain the marks of runs and of control runs."""
    layout = canvas.layout
    em = layout.font
    x = 0.0
    y = em
    numbers = (
        "median of the runs (range)"
        if any(row.runs for row in rows)
        else "half-change {point}"
    )
    right = layout.width - (
        0 if layout.narrow else max(layout.right, 0.56 * em * len(numbers))
    )
    for style, words in _items(canvas, rows):
        width = SAMPLE + 6 + 0.52 * em * len(words) + em
        if x > 0 and x + width > right:
            x = 0.0
            y = y + 1.5 * em
        _sample(canvas, style, x, y - 4)
        canvas.text(x + SAMPLE + 6, y, words, "note")
        x += width
    if not layout.narrow:
        canvas.text(layout.width, em, numbers, "note end")
    canvas.y = y + 8


def _items(canvas: Canvas, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Give the marks that are drawn, with what they mean."""
    names = next(([run.name for run in row.runs] for row in rows if row.runs), [])
    if names:
        yield "dot", f"{'chosen run' if canvas.linked else names[0]}, with interval"
        yield "run-dot", "other runs" if len(names) > 2 else "other run"
    else:
        yield "dot", "half-change {point}, with interval"
    runs = list(chain.from_iterable(row.runs for row in rows))
    if not all(one.firm for one in runs or rows):
        compared = any(row.controls for row in rows)
        yield "open-dot", CAPTIONS["open, controlled" if compared else "open"]
    if any(control_half_steps(row) for row in rows):
        yield "control-dot", "control runs"


def _sample(canvas: Canvas, style: str, x: float, y: float) -> None:
    middle = x + SAMPLE / 2
    if style == "control-dot":
        canvas.open_whisker(y, [x + 4, x + SAMPLE - 4])
    elif style == "run-dot":
        canvas.dot(style, middle, y)
    else:
        canvas.whisker(x, y, middle, x + SAMPLE, style)
