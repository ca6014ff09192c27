"""Figures of a result read from its attributes, by kind; what cannot be drawn says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import xarray as xr

from ..figures import Boundary
from ..words.content import Content
from ..words.formats import plain_text
from ..words.labels import slug
from .axes import is_step
from .clouds import read_words
from .drawable import Drawable, Problem
from .fields import check_dimensions, numbers, variable
from .points import read_scatter
from .runs import figure_with_runs
from .tabular import read_table


def read_drawables(content: Content) -> list[Drawable]:
    """Return the figures of all nodes; one that cannot be drawn keeps its place and says why."""
    return [read(each) for each in list_drawables(content)]


def list_drawables(content: Content) -> list[Drawable]:
    """Return the figures of all nodes by their names, not yet checked against the data."""
    drawables: list[Drawable] = []
    for node in content.nodes:
        taken: list[str] = []
        for figure, problem in node.figures:
            taken.append(slug(figure.id, taken))
            name = f"{node.id.removeprefix('section-')}/{taken[-1]}"
            drawables.append(Drawable(name, node, figure, content.groups, problem=problem))
    return drawables


def read(drawable: Drawable) -> Drawable:
    """Return a figure checked against its node's data, or with the reason why it is not drawn."""
    if drawable.problem:
        return drawable
    try:
        return _READERS.get(drawable.figure.kind, _read_panels)(drawable)
    except Problem as problem:
        return replace(drawable, problem=plain_text(problem))


def _read_panels(drawable: Drawable) -> Drawable:
    """Read curves, heatmaps and null comparisons: a value over the dimensions of its axes."""
    figure = drawable.figure
    value = numbers(drawable, figure.value)
    if value.size == 0:
        raise Problem(f"{figure.value!r} holds no values.")
    drawable = _with_axes(drawable, value)
    if figure.relative and numbers(drawable, figure.relative).dims != value.dims:
        raise Problem(f"{figure.relative!r} must have the dimensions of {figure.value!r}.")
    for name in drawable.variables:
        check_dimensions(numbers(drawable, name), value.dims, repr(figure.value))
    for boundary in getattr(figure, "boundaries", ()):
        _check_boundary(drawable, boundary)
    return figure_with_runs(drawable)


def _with_axes(drawable: Drawable, value: xr.DataArray) -> Drawable:
    """Return the figure without those of its optional dimensions that the value lacks."""
    figure = drawable.figure
    absent = {use: name for use, name in drawable.axes.items() if name not in value.dims}
    optional = ("series", "facet", "runs")
    if missing := [name for use, name in absent.items() if use not in optional]:
        raise Problem(f"{value.name!r} has no dimension {missing[0]!r}; it has {value.dims}.")
    drawable = replace(drawable, figure=replace(figure, **dict.fromkeys(absent)))
    axes = drawable.axes
    if len(set(axes.values())) < len(axes):
        raise Problem(f"One dimension of {value.name!r} is used twice: {axes}.")
    left = [str(d) for d in value.dims if d not in axes.values()]
    return replace(drawable, choose=left)


def _check_boundary(drawable: Drawable, boundary: Boundary) -> None:
    """Check a boundary, which has one step for each line or panel, or one for all."""
    x = drawable.figure.x
    if not is_step(x):
        raise Problem(f"Boundaries need training steps along x; x is {x!r}.")
    for name in boundary.variables:
        if x in variable(drawable, name).dims:
            raise Problem(f"{name!r} is a boundary and cannot differ from step to step.")


_READERS: dict[str, Callable[[Drawable], Drawable]] = {
    "table": read_table,
    "scatter": read_scatter,
    "words": read_words,
}
