"""One figure of a result, drawn by its kind for files and notebooks."""

from __future__ import annotations

from typing import Any

from ..content import Content
from ..figures.drawable import Drawable
from .base import kind_of


def draw_figure(drawable: Drawable, content: Content, ax: Any = None) -> tuple[Any, list[str]]:
    """Return the figure, and in words what it does not show: all that its caption must say.

    With `ax` it is drawn on these axes, which it must fit: one panel, and no text.
    """
    from ..paper.view import FigureView

    view = FigureView(drawable, content, ax)
    drawn = kind_of(drawable.figure).draw(view)
    if ax is None and drawn.get_layout_engine() is not None:
        # Every further drawing would move the parts of a figure a little, so its layout is fixed.
        for _ in range(2):
            drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
    return drawn, _notes(view)


def figure_notes(drawable: Drawable, content: Content) -> list[str]:
    """Return in words what a figure does not show."""
    from ..paper.view import FigureView

    return _notes(FigureView(drawable, content))


def _notes(view: Any) -> list[str]:
    chosen = f"Shown: {view.chosen}." if view.chosen else ""
    left_out = kind_of(view.drawable.figure).notes(view)
    return [note for note in (chosen, view.drawable.notices, *left_out) if note]
