"""Tables: HTML on the page, CSV and LaTeX as files, and no picture."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...errors import ArgumentError
from ...figures import Table
from ..figures.drawable import Drawable
from ..figures.tables import read_table
from .base import FigureKind


class TableKind(FigureKind):
    """Numbers in rows and columns."""

    figure = Table
    text = True

    def script(self) -> str:
        """Return nothing: the template writes tables."""
        return ""

    def read(self, drawable: Drawable) -> Drawable:
        """Read all cells."""
        return read_table(drawable)

    def frame(self, drawable: Drawable) -> pd.DataFrame:
        """Return the table as it is read, with its lines under it."""
        assert drawable.table is not None
        return drawable.table.frame

    def draw(self, view: Any) -> Any:
        """Refuse to draw it."""
        raise ArgumentError(f"{view.drawable.id!r} is a table; .data has its numbers.")
