"""Figures for papers: the page's figures as PDF, SVG and PNG, drawn without a browser.

Every module here draws what :mod:`ontogeny.report.readers` read; matplotlib is imported with it.
"""

from __future__ import annotations

from .chart import draw_chart_figure
from .draw import draw_figure
from .save import save, style

__all__ = ["draw_chart_figure", "draw_figure", "save", "style"]
