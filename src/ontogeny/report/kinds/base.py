"""What the report knows of a kind of figure; a result's figures read, or why one is not drawn."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import xarray as xr

from ...figures import Curves, Figure, Heatmap
from ...words.content import Content
from ...words.formats import plain_text
from ...words.labels import slug
from ..figures.drawable import Drawable, Problem
from ..figures.frames import figure_frame
from ..figures.panels import read_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from ..paper.view import FigureView

MANY_LAYERS = 8


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


def read_drawables(content: Content) -> list[Drawable]:
    """Return the figures of all nodes; one that cannot be drawn keeps its place and says why."""
    return [read(item) for item in list_drawables(content)]


def list_drawables(content: Content) -> list[Drawable]:
    """Return the figures of all nodes by their names, not yet checked against the data."""
    drawables: list[Drawable] = []
    for node in content.nodes:
        taken: list[str] = []
        maps = [(m, "") for figure, _ in node.figures for m in _maps(figure, node.dataset)]
        for figure, problem in (*node.figures, *maps):
            taken.append(slug(figure.id, taken))
            name = f"{node.id.removeprefix('section-')}/{taken[-1]}"
            drawables.append(Drawable(name, node, figure, content.groups, problem=problem))
    return drawables


def _maps(figure: Figure, data: xr.Dataset) -> Iterator[Heatmap]:
    """Give a heat map of layer by step beside lines of so many layers that none can be followed."""
    lines = isinstance(figure, Curves) and (figure.x, figure.series) == ("step", "layer")
    if lines and figure.value in data and data.sizes.get("layer", 0) >= MANY_LAYERS:
        if set(data[figure.value].dims) - {"step", "layer", figure.facet, *figure.select}:
            return  # several runs
        yield Heatmap(
            f"{figure.id}-map",
            f"{figure.title}, layer by step",
            value=figure.value,
            relative=figure.relative,
            relative_label=figure.relative_label,
            facet=figure.facet,
            select=figure.select,
        )


def read(drawable: Drawable) -> Drawable:
    """Return a figure checked against its node's data, or with the reason why it is not drawn."""
    if drawable.problem:
        return drawable
    try:
        return kind_of(drawable.figure).read(drawable)
    except Problem as problem:
        return replace(drawable, problem=plain_text(problem))


def draw_figure(drawable: Drawable, content: Content, ax: Any = None) -> Any:
    """Return the matplotlib figure; `figure_notes` says what it does not show.

    With `ax` it is drawn on these axes, which it must fit: one panel, and no text.
    """
    from ..paper.frame import fix_layout
    from ..paper.view import FigureView

    drawing = kind_of(drawable.figure).draw(FigureView(drawable, content, ax))
    if ax is None and drawing.get_layout_engine() is not None:
        fix_layout(drawing)
    return drawing


def figure_notes(drawable: Drawable, content: Content) -> list[str]:
    """Return in words what a figure does not show."""
    from ..paper.view import FigureView

    view = FigureView(drawable, content)
    choice = f"Shown: {view.chosen}." if view.chosen else ""
    left_out = kind_of(drawable.figure).notes(view)
    return [note for note in (choice, drawable.notices, *left_out) if note]
