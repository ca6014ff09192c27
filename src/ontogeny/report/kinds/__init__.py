"""Kinds of figures: how each is read, drawn on paper and on the page, and written as a table.

A new kind is a class of `ontogeny.figures` and one subclass of `FigureKind`, in a module of its own
that is imported here; `base` says what it may define.
"""

from __future__ import annotations

from . import panels, scatter, tables, words  # noqa: F401 - these are the kinds that there are
from .base import FigureKind, kind_of
from .drawing import draw_figure, figure_notes
from .reading import list_drawables, read, read_drawables

__all__ = [
    "FigureKind",
    "draw_figure",
    "figure_notes",
    "kind_of",
    "list_drawables",
    "read",
    "read_drawables",
]
