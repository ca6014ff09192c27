"""One figure of a result, drawn by its kind."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...words.content import Content
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


def draw_figure(
    drawable: Drawable, content: Content, ax: Axes | None = None
) -> tuple[Figure, list[str]]:
    """Return the figure, and in words what it does not show: all that its caption must say.

    With `ax` it is drawn on these axes, which it must fit: one panel, not a cloud of words.
    """
    view = FigureView(drawable, content, ax)
    drawn = _KINDS[drawable.figure.kind](view)
    if ax is None and drawn.get_layout_engine() is not None:
        # Every further drawing would move the parts of a figure a little, so its layout is fixed.
        for _ in range(2):
            drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
    return drawn, _notes(view)


def figure_notes(drawable: Drawable, content: Content) -> list[str]:
    """Return in words what a figure does not show."""
    return _notes(FigureView(drawable, content))


def _notes(view: FigureView) -> list[str]:
    notes = [f"Shown: {view.chosen}."] if view.chosen else []
    if view.drawable.notices:
        notes.append(view.drawable.notices)
    if view.drawable.figure.kind == "words":
        notes += words_without_glyphs(view)
    return notes
