"""What the report knows of a kind of figure; a result's figures read, or why one is not drawn."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from ...figures import Curves, Figure, Heatmap
from ...words.content import Content
from ...words.formats import plain_text
from ...words.labels import slug
from ...words.voice import Voice
from ..figures.axes import is_step
from ..figures.drawable import Drawable, Problem
from ..figures.frames import figure_frame
from ..figures.panels import read_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from ..paper.view import FigureView

MANY_LAYERS = 8
BUDGET = 600_000  # numbers that a page may hold, about 6 MB

MIN_KEPT = 24  # thinning by steps stops here; then other dimensions are thinned, the longest first


class FigureKind(abc.ABC):
    """How figures of one class are read and drawn; every subclass is a kind.

    A subclass gives the class of its specifications, a script for the page and a drawing for files
    and notebooks. The other methods suit a value over the dimensions of its axes.

    Attributes
    ----------
    figure
        The class of `ontogeny.figures` that specifies such a figure.
    script
        A file of JavaScript that enters its class in ``PICTURES``, as ``scripts/picture.js`` explains.
        It can use what ``scripts/index.js`` exports. The library's own kinds are modules beside it.
    text
        Whether it is text on the page, and so has no picture to save and no axes to draw on.
    """

    figure: ClassVar[type[Figure]]

    script: ClassVar[Traversable | None] = None

    text: ClassVar[bool] = False

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
    """Return the JavaScript of kinds that bring their own."""
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
        figures = list(node.figures)
        for figure, _ in node.figures:
            maps = _maps(figure, node.dataset, content.voice)
            figures += [(each, "") for each in maps]
        for figure, problem in figures:
            taken.append(slug(figure.id, taken))
            name = f"{node.id.removeprefix('section-')}/{taken[-1]}"
            drawables.append(
                Drawable(
                    name,
                    node,
                    figure,
                    content.groups,
                    problem=problem,
                    voice=content.voice,
                )
            )
    return drawables


def _maps(figure: Figure, data: xr.Dataset, voice: Voice) -> Iterator[Heatmap]:
    """Give a heat map of layer by step beside lines of so many layers that none can be followed."""
    lines = isinstance(figure, Curves) and (figure.x, figure.series) == (
        "step",
        "layer",
    )
    if lines and figure.value in data and data.sizes.get("layer", 0) >= MANY_LAYERS:
        if set(data[figure.value].dims) - {
            "step",
            "layer",
            figure.facet,
            *figure.select,
        }:
            return  # several runs
        yield Heatmap(
            f"{figure.id}-map",
            f"{figure.title}, layer by {voice.checkpoint}",
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


def thinned(drawables: Sequence[Drawable], budget: int) -> list[Drawable]:
    """Return figures whose arrays hold no more than `budget` numbers together.

    Those of small nodes stay whole; those of large ones share what is left evenly. Tables and
    figures that cannot be drawn hold no arrays.
    """
    arrays: dict[str, dict[tuple[str, str], xr.DataArray]] = {}
    whole: dict[str, set[str]] = {}
    for view in drawables:
        if view.problem or view.table is not None:
            continue
        values = {view.array_key(name): view.array(name) for name in view.variables}
        arrays.setdefault(view.node.id, {}).update(values)
        whole.setdefault(view.node.id, set()).update(kind_of(view.figure).whole(view))
    sizes = {
        node: sum(a.size for a in values.values()) for node, values in arrays.items()
    }
    budget_left = budget
    places = {}
    for i, (node, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        share = min(size, budget_left // (len(sizes) - i))
        budget_left -= share
        lengths: dict[str, int] = {}
        for array in arrays[node].values():
            lengths |= {str(dim): length for dim, length in array.sizes.items()}
        for dim in whole[node]:
            lengths.pop(dim, None)
        places[node] = _indices(lengths, share / size if size else 1.0)
    for view in drawables:
        if view.runs and "step" in places.get(view.node.id, {}):
            # No difference without.
            read = np.isin(view.node.dataset["step"], view.runs.steps)
            steps = np.union1d(places[view.node.id]["step"], np.flatnonzero(read))
            places[view.node.id]["step"] = steps
    return [
        view
        if view.problem or view.table is not None
        else replace(view, places=places[view.node.id])
        for view in drawables
    ]


def _indices(lengths: Mapping[str, int], share: float) -> dict[str, np.ndarray]:
    """Thin dimensions until `share` of the numbers is left: those over steps alike, then others."""
    places: dict[str, np.ndarray] = {}
    order = sorted(lengths, key=lambda d: (not is_step(d), -lengths[d]))
    over_steps = sum(map(is_step, lengths))
    for place, dimension in enumerate(order):
        if share >= 1:
            break
        length = lengths[dimension]
        alike = max(over_steps - place, 1)
        count = min(max(int(length * share ** (1 / alike)), MIN_KEPT), length)
        places[dimension] = np.unique(
            np.linspace(0, length - 1, count).round().astype(int)
        )
        share *= length / count
    return places
