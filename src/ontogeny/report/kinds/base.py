"""What the report knows of a kind of figure, and which kind a figure is."""

from __future__ import annotations

import abc
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from ...figures import Figure
from ..figures.drawable import Drawable, Problem
from ..figures.frames import figure_frame
from ..figures.panels import read_panels

if TYPE_CHECKING:  # matplotlib is an extra, which the page does not need
    from matplotlib.figure import Figure as Picture

    from ..paper.view import FigureView


class FigureKind(abc.ABC):
    """How figures of one class are read and drawn; every subclass is a kind.

    A subclass gives the class of its specifications, a script for the page and a drawing for files
    and notebooks. The other methods suit a value over the dimensions of its axes.
    """

    figure: ClassVar[type[Figure]]
    """The class of `ontogeny.figures` that specifies such a figure."""

    script: ClassVar[Traversable | None] = None
    """A file of JavaScript that enters its class in ``PICTURES``, as ``picture.js`` explains."""

    text: ClassVar[bool] = False
    """Whether it is text on the page, and so has no picture to save and no axes to draw on."""

    @abc.abstractmethod
    def draw(self, view: FigureView) -> Picture:
        """Return it as a matplotlib figure."""

    def read(self, drawable: Drawable) -> Drawable:
        """Return a figure checked against its node; raise `Problem` where it cannot be drawn."""
        return read_panels(drawable)

    def payload(self, drawable: Drawable) -> dict[str, Any]:
        """Return what its script needs beyond its specification and arrays."""
        return {}

    def frame(self, drawable: Drawable) -> pd.DataFrame:
        """Return its data as a tidy table: a row for each point, the dimensions first."""
        return figure_frame(drawable)

    def whole(self, drawable: Drawable) -> set[str]:
        """Return the dimensions that make no sense in part, which a large page does not thin."""
        return set()

    def notes(self, view: FigureView) -> list[str]:
        """Return in words what its drawing leaves out."""
        return []


def kind_of(figure: Figure) -> FigureKind:
    """Return the kind of a figure.

    Raises
    ------
    Problem
        If nothing says how figures of its class are drawn.
    """
    for kind in FigureKind.__subclasses__():
        if kind.figure is type(figure):
            return kind()
    raise Problem(f"Nothing draws figures of the kind {figure.kind!r}.")


def scripts() -> list[str]:
    """Return the JavaScript of all kinds."""
    files = [kind.script for kind in FigureKind.__subclasses__()]
    return [file.read_text(encoding="utf-8") for file in files if file is not None]
