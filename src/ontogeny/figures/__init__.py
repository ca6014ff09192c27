"""Figure specifications: what to draw, as plain data that any renderer can follow.

An observable's ``summarise`` attaches these to its dataset; the report renders them by ``kind``
and needs neither the observable's package nor a model. Every name in a specification
is a variable or a dimension of the dataset that it is attached to.
"""

from .base import Figure, Section, attach
from .panels import Band, Boundary, Curves, Heatmap, Marks, NullComparison
from .points import Scatter
from .tables import Column, Footer, Pair, Table
from .words import Words, show_token

__all__ = [
    "Band",
    "Boundary",
    "Column",
    "Curves",
    "Figure",
    "Footer",
    "Heatmap",
    "Marks",
    "NullComparison",
    "Pair",
    "Scatter",
    "Section",
    "Table",
    "Words",
    "attach",
    "show_token",
]
