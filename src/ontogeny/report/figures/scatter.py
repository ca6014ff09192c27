"""Scatters read: the coordinates of the points, their colours and their names."""

from __future__ import annotations

from dataclasses import replace

from ...figures.words import show_token
from .drawable import Drawable, Problem
from .fields import check_dimensions, is_text, numbers, texts, variable, with_texts


def read_scatter(drawable: Drawable) -> Drawable:
    """Read a figure of points."""
    figure = drawable.figure
    points = (figure.points,) if isinstance(figure.points, str) else tuple(figure.points)
    coordinates = [numbers(drawable, name) for name in (figure.x, figure.y, figure.z) if name]
    dims = list(dict.fromkeys(str(d) for array in coordinates for d in array.dims))
    if missing := [d for d in points if d not in dims]:
        raise Problem(f"{figure.x!r} has no dimension {missing[0]!r}; it has {tuple(dims)}.")
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
            words[name] if name in words else numbers(drawable, name), dims, "its points"
        )
    return replace(
        drawable,
        figure=replace(figure, value=figure.x, points=points, facet=facet),
        choose=[d for d in dims if d not in (*points, facet)],
        own=words,
    )
