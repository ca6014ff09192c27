"""The first picture as SVG, which stands in the page for readers without JavaScript."""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape

import numpy as np

from ...words.content import Content
from ...words.formats import with_interval
from ..chart.canvas import WIDE, Canvas
from ..chart.draw import draw_axis, draw_clock, draw_track
from ..colours import LEVELS
from ..concepts.lives import Concept, Concepts, line_names
from ..first_screen.runs import line_levels
from ..first_screen.screen import FirstScreen

_LAYOUT = replace(WIDE, name="first", width=860, left=190, right=150)
_HEIGHT = 14.0


def first_picture(content: Content, first: FirstScreen) -> str:
    """Return the loss with its lines over the life lines of concepts."""
    canvas = Canvas(_LAYOUT, content.steps)
    if first.loss is not None and content.track is not None:
        draw_track(canvas, content.track, line_levels(content, first.loss))
    if first.concepts is not None:
        lines = first.concepts.lines
        for concept, name in zip(lines, line_names(lines), strict=True):
            _line(canvas, first.concepts, concept, name)
    draw_axis(canvas)
    draw_clock(canvas, content.clock)
    head = f'viewBox="0 0 {_LAYOUT.width:g} {math.ceil(canvas.y + 6)}" font-size="{_LAYOUT.font}"'
    return f'<svg {head} role="img" aria-label="{escape(first.heading)}">{canvas.svg}</svg>'


def _line(canvas: Canvas, concepts: Concepts, concept: Concept, name: str) -> None:
    """Draw a cell for each step, tinted by the square of the strength or hatched, and the birth."""
    layout, top = canvas.layout, canvas.y + 4
    strength, course = (
        concepts.arrays.over_steps(finite)[concept.place] for finite in ("strength", "readability")
    )
    share = np.clip(np.nan_to_num(strength / concept.peak), 0, 1)
    edges = canvas.x(canvas.scale.edges(concepts.data["step"].values.astype(int)))
    for (left, right), part, clear in zip(edges, share, course >= concepts.readable, strict=True):
        style = f"q{round(part**2 * (LEVELS - 1))}" if clear else "hatched"
        canvas.box(style, float(left), top, float(right - left), _HEIGHT)
    base, middle = top + _HEIGHT - 3, top + _HEIGHT / 2
    words = concept.kind
    if math.isfinite(concept.born):
        ends = [e if math.isfinite(e) else concept.born for e in (concept.after, concept.before)]
        low, high, at = map(canvas.x_of_step, (*ends, concept.born))
        canvas.whisker(low, middle, at, high)
        words = with_interval(concept.born, concept.after, concept.before)
    canvas.text(layout.left - 10, base, name, "name end")
    canvas.text(layout.width, base, words, "value end")
    canvas.y = top + _HEIGHT
