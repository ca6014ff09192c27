"""Kinds with a value over the dimensions of their axes, in small multiples."""

from __future__ import annotations

from typing import Any

from ...figures import Curves, Heatmap, Marks, NullComparison
from ..style import static_text
from .base import FigureKind


class CurvesKind(FigureKind):
    """Lines with bands, a reference and boundaries between regimes."""

    figure = Curves

    def script(self) -> str:
        """Return ``curves.js``."""
        return static_text("curves.js")

    def draw(self, view: Any) -> Any:
        """Draw lines."""
        from ..paper.curves import draw_curves

        return draw_curves(view)


class HeatmapKind(FigureKind):
    """Cells in colours."""

    figure = Heatmap

    def script(self) -> str:
        """Return ``heatmap.js``."""
        return static_text("heatmap.js")

    def draw(self, view: Any) -> Any:
        """Draw cells."""
        from ..paper.heatmap import draw_heatmap

        return draw_heatmap(view)


class NullKind(FigureKind):
    """Dots beside the bands of their nulls."""

    figure = NullComparison

    def script(self) -> str:
        """Return ``nulls.js``."""
        return static_text("nulls.js")

    def draw(self, view: Any) -> Any:
        """Draw rows of dots and bands."""
        from ..paper.nulls import draw_nulls

        return draw_nulls(view)


class MarksKind(FigureKind):
    """Marks on one axis, several in each row."""

    figure = Marks

    def script(self) -> str:
        """Return ``marks.js``."""
        return static_text("marks.js")

    def draw(self, view: Any) -> Any:
        """Draw rows of marks."""
        from ..paper.marks import draw_marks

        return draw_marks(view)
