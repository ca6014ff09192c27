"""The kinds of figures that the library has; each is read in `report.figures`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import pandas as pd

from ...errors import ArgumentError
from ...figures import Curves, Heatmap, Marks, NullComparison, Scatter, Table, Words
from ..figures.drawable import Drawable
from ..figures.panels import read_scatter
from ..figures.tables import read_table
from ..figures.words import heaviest, read_words
from .base import FigureKind


class _Drawn:
    """Drawn by the module of `report.paper` and the function in it that bear its name."""

    drawing: ClassVar[str]

    def draw(self, view: Any) -> Any:
        """Draw it; matplotlib is only imported now."""
        module = import_module(f"...paper.{self.drawing}", __name__)
        return getattr(module, f"draw_{self.drawing}")(view)


class CurvesKind(_Drawn, FigureKind):
    """Lines with bands, a reference and boundaries between regimes."""

    figure = Curves
    drawing = "curves"


class HeatmapKind(_Drawn, FigureKind):
    """Cells in colours."""

    figure = Heatmap
    drawing = "heatmap"


class NullKind(_Drawn, FigureKind):
    """Dots beside the bands of their nulls."""

    figure = NullComparison
    drawing = "nulls"


class MarksKind(_Drawn, FigureKind):
    """Marks on one axis, several in each row."""

    figure = Marks
    drawing = "marks"


class ScatterKind(_Drawn, FigureKind):
    """Points, of which there are many more than labels."""

    figure = Scatter
    drawing = "scatter"
    read = staticmethod(read_scatter)


class WordsKind(_Drawn, FigureKind):
    """Clouds of words, or a tree of clouds; on the page they are text."""

    figure = Words
    text = True
    drawing = "words"
    read = staticmethod(read_words)

    def payload(self, drawable: Drawable) -> dict[str, Any]:
        """Return the clouds in the order of drawing, and the largest weight of a word."""
        return {"tree": drawable.tree, "heaviest": heaviest(drawable)}

    def whole(self, drawable: Drawable) -> set[str]:
        """Return the dimensions of a cloud's words and of the tree."""
        return set(map(str, drawable.extra[drawable.figure.value].dims)) - set(
            drawable.choose
        )

    def notes(self, view: Any) -> list[str]:
        """Return the words that the picture's font lacks."""
        from ..paper.words import words_without_glyphs

        return words_without_glyphs(view)


class TableKind(FigureKind):
    """Numbers in rows and columns: HTML on the page, CSV and LaTeX as files, and no picture."""

    figure = Table
    text = True
    read = staticmethod(read_table)

    def frame(self, drawable: Drawable) -> pd.DataFrame:
        """Return the table as it is read, with its lines under it."""
        assert drawable.table is not None
        return drawable.table.frame

    def draw(self, view: Any) -> Any:
        """Refuse to draw it."""
        raise ArgumentError(f"{view.drawable.id!r} is a table; .data has its numbers.")
