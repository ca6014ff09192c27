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
from .view import FigureView

__all__ = ["draw_figure"]

_KINDS = {"curves": draw_curves, "heatmap": draw_heatmap, "null": draw_nulls}


def draw_figure(
    figure: Mapping[str, Any], table: NodeTable, content: Content
) -> tuple[Figure, str]:
    """Return the figure, and in words what was taken along dimensions that it does not use."""
    view = FigureView(figure, table, content)
    return _KINDS[view.figure["kind"]](view), view.chosen
