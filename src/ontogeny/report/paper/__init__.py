"""Figures for papers: the page's figures as PDF, SVG and PNG, drawn without a browser.

Every module here draws what :mod:`ontogeny.report.kinds` read; matplotlib is imported with it.
"""

from ..drawing import check_drawing

check_drawing()  # before the first import of matplotlib

from .chart import draw_chart_figure
from .contact_sheet import draw_contact_sheet
from .first_screen import draw_first_screen, draw_life_figure
from .frame import encoded, save, style

__all__ = [
    "draw_chart_figure",
    "draw_contact_sheet",
    "draw_first_screen",
    "draw_life_figure",
    "encoded",
    "save",
    "style",
]
