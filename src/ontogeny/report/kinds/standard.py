"""The kinds of figures that the library has; each is read in `report.figures`."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...errors import ArgumentError
from ...figures import Curves, Heatmap, Marks, NullComparison, Scatter, Table, Words
from ..figures.drawable import Drawable
from ..figures.panels import read_scatter
from ..figures.tables import read_table
from ..figures.words import heaviest, read_words
from ..style import STATIC
from .base import FigureKind


class CurvesKind(FigureKind):
    """Lines with bands, a reference and boundaries between regimes."""

    figure, script = Curves, STATIC / "curves.js"

    def draw(self, view: Any) -> Any:
        """Draw lines."""
        from ..paper.curves import draw_curves

        return draw_curves(view)


class HeatmapKind(FigureKind):
    """Cells in colours."""

    figure, script = Heatmap, STATIC / "heatmap.js"

    def draw(self, view: Any) -> Any:
        """Draw cells."""
        from ..paper.heatmap import draw_heatmap

        return draw_heatmap(view)


class NullKind(FigureKind):
    """Dots beside the bands of their nulls."""

    figure, script = NullComparison, STATIC / "nulls.js"

    def draw(self, view: Any) -> Any:
        """Draw rows of dots and bands."""
        from ..paper.nulls import draw_nulls

        return draw_nulls(view)


class MarksKind(FigureKind):
    """Marks on one axis, several in each row."""

    figure, script = Marks, STATIC / "marks.js"

    def draw(self, view: Any) -> Any:
        """Draw rows of marks."""
        from ..paper.marks import draw_marks

        return draw_marks(view)


class ScatterKind(FigureKind):
    """Points, of which there are many more than labels."""

    figure, script = Scatter, STATIC / "scatter.js"
    read = staticmethod(read_scatter)

    def draw(self, view: Any) -> Any:
        """Draw points."""
        from ..paper.scatter import draw_scatter

        return draw_scatter(view)


class WordsKind(FigureKind):
    """Clouds of words, or a tree of clouds; on the page they are text."""

    figure, script, text = Words, STATIC / "words.js", True
    read = staticmethod(read_words)

    def payload(self, drawable: Drawable) -> dict[str, Any]:
        """Return the clouds in the order of drawing, and the largest weight of a word."""
        return {"tree": drawable.tree, "heaviest": heaviest(drawable)}

    def whole(self, drawable: Drawable) -> set[str]:
        """Return the dimensions of a cloud's words and of the tree."""
        return set(map(str, drawable.extra[drawable.figure.value].dims)) - set(drawable.choose)

    def draw(self, view: Any) -> Any:
        """Draw the clouds."""
        from ..paper.words import draw_words

        return draw_words(view)

    def notes(self, view: Any) -> list[str]:
        """Return the words that the picture's font lacks."""
        from ..paper.words import words_without_glyphs

        return words_without_glyphs(view)


class TableKind(FigureKind):
    """Numbers in rows and columns: HTML on the page, CSV and LaTeX as files, and no picture."""

    figure, text = Table, True
    read = staticmethod(read_table)

    def frame(self, drawable: Drawable) -> pd.DataFrame:
        """Return the table as it is read, with its lines under it."""
        assert drawable.table is not None
        return drawable.table.frame

    def draw(self, view: Any) -> Any:
        """Refuse to draw it."""
        raise ArgumentError(f"{view.drawable.id!r} is a table; .data has its numbers.")
