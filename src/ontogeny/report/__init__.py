"""The report: a merged result drawn as one page, and its figures as files.

This package knows results only: it draws the figure specifications that a result carries, and needs
neither the observables that made it nor a model.
"""

from __future__ import annotations

from .files.write import chart_svg, check_formats, write_figures
from .notebook import FigureIndex, ResultChart, ResultFigure, ResultSummary
from .page.live import Live
from .page.write import write

__all__ = [
    "FigureIndex",
    "Live",
    "ResultChart",
    "ResultFigure",
    "ResultSummary",
    "chart_svg",
    "check_formats",
    "write",
    "write_figures",
]
