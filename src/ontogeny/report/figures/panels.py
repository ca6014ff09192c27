"""Figures read: values over the dimensions of axes, and the points of scatters."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import xarray as xr

from ...figures import Boundary
from ...figures.words import show_token
from .axes import is_step
from .drawable import Drawable, Problem
from .fields import check_dimensions, is_text, numbers, texts, variable, with_texts
from .runs import figure_with_runs


def read_panels(drawable: Drawable) -> Drawable:
    """Read a value over the dimensions of its axes."""
    figure = drawable.figure
    value = numbers(drawable, figure.value)
    if value.size == 0:
        raise Problem(f"{figure.value!r} holds no values.")
    drawable = _with_axes(drawable, value)
    if figure.relative and numbers(drawable, figure.relative).dims != value.dims:
        raise Problem(
            f"{figure.relative!r} must have the dimensions of {figure.value!r}."
        )
    for name in drawable.variables:
        check_dimensions(numbers(drawable, name), value.dims, repr(figure.value))
    for boundary in getattr(figure, "boundaries", ()):
        _check_boundary(drawable, boundary)
    return figure_with_runs(drawable)


def _with_axes(drawable: Drawable, value: xr.DataArray) -> Drawable:
    """Return the figure without those of its optional dimensions that the value lacks."""
    figure = drawable.figure
    absent = {
        use: name for use, name in drawable.axes.items() if name not in value.dims
    }
    optional = ("series", "facet", "runs")
    if missing := [name for use, name in absent.items() if use not in optional]:
        raise Problem(
            f"{value.name!r} has no dimension {missing[0]!r}; it has {value.dims}."
        )
    drawable = replace(drawable, figure=replace(figure, **dict.fromkeys(absent)))
    axes = drawable.axes
    if len(set(axes.values())) < len(axes):
        raise Problem(f"One dimension of {value.name!r} is used twice: {axes}.")
    return replace(
        drawable, choose=[str(d) for d in value.dims if d not in axes.values()]
    )


def _check_boundary(drawable: Drawable, boundary: Boundary) -> None:
    """Check a boundary, which has one step for each line or panel, or one for all."""
    x = drawable.figure.x
    if not is_step(x):
        raise Problem(f"Boundaries need training steps along x; x is {x!r}.")
    for name in boundary.variables:
        if x in variable(drawable, name).dims:
            raise Problem(
                f"{name!r} is a boundary and cannot differ from step to step."
            )


def read_scatter(drawable: Drawable) -> Drawable:
    """Read a figure of points."""
    figure = drawable.figure
    points = (
        (figure.points,) if isinstance(figure.points, str) else tuple(figure.points)
    )
    coordinates = [
        numbers(drawable, name) for name in (figure.x, figure.y, figure.z) if name
    ]
    all_dims = chain.from_iterable(array.dims for array in coordinates)
    dims = list(dict.fromkeys(map(str, all_dims)))
    if missing := [d for d in points if d not in dims]:
        raise Problem(
            f"{figure.x!r} has no dimension {missing[0]!r}; it has {tuple(dims)}."
        )
    if any(array.size == 0 for array in coordinates):
        raise Problem(f"{figure.x!r} holds no values.")
    facet = figure.facet if figure.facet in dims else None
    if facet in points:
        raise Problem(f"One dimension is used twice: {facet!r}.")
    words = {}
    for name in (figure.colour if figure.colour not in dims else None, figure.label):
        if not name:
            continue
        if name == figure.label or is_text(variable(drawable, name)):
            words[name] = with_texts(texts(drawable, name), show_token)
        check_dimensions(
            words[name] if name in words else numbers(drawable, name),
            dims,
            "its points",
        )
    return replace(
        drawable,
        figure=replace(figure, value=figure.x, points=points, facet=facet),
        choose=[d for d in dims if d not in (*points, facet)],
        extra=words,
    )
