"""Points in a plane or in space."""

from __future__ import annotations

from typing import Any

from ...figures import Scatter
from ..figures.drawable import Drawable
from ..figures.scatter import read_scatter
from ..style import static_text
from .base import FigureKind


class ScatterKind(FigureKind):
    """Points, of which there are many more than labels."""

    figure = Scatter

    def script(self) -> str:
        """Return ``scatter.js``."""
        return static_text("scatter.js")

    def read(self, drawable: Drawable) -> Drawable:
        """Read coordinates, colours and names."""
        return read_scatter(drawable)

    def draw(self, view: Any) -> Any:
        """Draw points."""
        from ..paper.scatter import draw_scatter

        return draw_scatter(view)
