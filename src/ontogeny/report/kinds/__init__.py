"""Kinds of figures: how each is read, drawn on paper and on the page, and written as a table.

A new kind is a class of `ontogeny.figures` and one subclass of `FigureKind`, in a module of its own
that is imported here or by whoever uses it; `base` says what it may define.
"""

from . import standard  # noqa: F401 - these are the kinds that the library has
from .base import (
    FigureKind,
    draw_figure,
    figure_notes,
    kind_of,
    list_drawables,
    read,
    read_drawables,
)

__all__ = [
    "FigureKind",
    "draw_figure",
    "figure_notes",
    "kind_of",
    "list_drawables",
    "read",
    "read_drawables",
]
