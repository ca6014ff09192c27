"""A result's figures as objects for notebooks and scripts: drawn, as data, and as files.

The pictures are those that `ontogeny.report.write_figures` writes for papers, and the data are the
same tables.
"""

from .figure import ResultChart, ResultFigure
from .index import FigureIndex
from .picture import Picture
from .summary import ResultSummary

__all__ = ["FigureIndex", "Picture", "ResultChart", "ResultFigure", "ResultSummary"]
