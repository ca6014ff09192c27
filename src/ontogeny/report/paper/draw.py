"""One figure of a result, drawn by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ..content import Content
from ..table import NodeTable
from .curves import draw_curves
from .heatmap import draw_heatmap
from .nulls import draw_nulls
from .scatter import draw_scatter
from .view import FigureView
from .words import draw_words, words_without_glyphs

__all__ = ["draw_figure"]

_KINDS = {
    "curves": draw_curves,
    "heatmap": draw_heatmap,
    "null": draw_nulls,
    "scatter": draw_scatter,
    "words": draw_words,
}


def draw_figure(
    figure: Mapping[str, Any], table: NodeTable, content: Content
) -> tuple[Figure, list[str]]:
    """Return the figure, and in words what it does not show: all that its caption must say."""
    view = FigureView(figure, table, content)
    notes = [f"Shown: {view.chosen}."] if view.chosen else []
    if figure["notice"]:
        notes.append(str(figure["notice"]))
    if figure["kind"] == "words":
        notes += words_without_glyphs(view)
    drawn = _KINDS[view.figure["kind"]](view)
    _settle(drawn)
    return drawn, notes


def _settle(figure: Figure) -> None:
    """Lay a figure out and keep it so: every further drawing would move its parts a little."""
    if figure.get_layout_engine() is None:
        return
    for _ in range(2):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
