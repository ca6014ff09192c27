"""One figure of a result, drawn by its kind."""

from __future__ import annotations

from matplotlib.figure import Figure

from ..content import Content
from ..drawable import Drawable
from .curves import draw_curves
from .heatmap import draw_heatmap
from .marks import draw_marks
from .nulls import draw_nulls
from .scatter import draw_scatter
from .view import FigureView
from .words import draw_words, words_without_glyphs

_KINDS = {
    "curves": draw_curves,
    "heatmap": draw_heatmap,
    "null": draw_nulls,
    "marks": draw_marks,
    "scatter": draw_scatter,
    "words": draw_words,
}


def draw_figure(drawable: Drawable, content: Content) -> tuple[Figure, list[str]]:
    """Return the figure, and in words what it does not show: all that its caption must say."""
    view = FigureView(drawable, content)
    notes = [f"Shown: {view.chosen}."] if view.chosen else []
    if drawable.notices:
        notes.append(drawable.notices)
    if drawable.figure.kind == "words":
        notes += words_without_glyphs(view)
    drawn = _KINDS[drawable.figure.kind](view)
    if drawn.get_layout_engine() is not None:
        # Every further drawing would move the parts of a figure a little, so its layout is fixed.
        for _ in range(2):
            drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
    return drawn, notes
