"""Scatters read: the coordinates of the points, their colours and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from ..figures import show_token
from .fields import is_text, numbers, texts, variable
from .specs import FigureSpec, Problem

__all__ = ["POINTS_SHOWN", "drawn_points", "read_scatter"]

POINTS_SHOWN = 3_000
"""Points of one figure that are drawn; more make a page slow and say nothing more."""


def read_scatter(spec: FigureSpec, raw: Mapping[str, Any]) -> FigureSpec:
    """Read a figure of points."""
    given = raw.get("points") or "point"
    points = [given] if isinstance(given, str) else [str(d) for d in given]
    places = {use: numbers(spec, raw.get(use)) for use in ("x", "y", "z") if raw.get(use)}
    if not {"x", "y"} <= set(places):
        raise Problem("A scatter needs x and y.")
    dims = list(dict.fromkeys(str(d) for array in places.values() for d in array.dims))
    missing = [d for d in points if d not in dims]
    if missing:
        raise Problem(f"{raw['x']!r} has no dimension {missing[0]!r}; it has {tuple(dims)}.")
    if any(array.size == 0 for array in places.values()):
        raise Problem(f"{raw['x']!r} holds no values.")
    axes = {"facet": str(raw["facet"])} if raw.get("facet") in dims else {}
    if axes and axes["facet"] in points:
        raise Problem(f"One dimension is used twice: {axes['facet']!r}.")
    parts = {use: str(raw[use]) for use in places if use != "x"}
    own: dict[str, xr.DataArray] = {}
    colour = raw.get("colour") or ""
    if colour and colour not in dims:
        parts["colour"] = _colour(spec, colour, dims, own)
    if raw.get("label"):
        parts["label"] = str(raw["label"])
        own[parts["label"]] = _names(spec, parts["label"], dims)
    return replace(
        spec,
        value=str(raw["x"]),
        axes=axes,
        choose=[d for d in dims if d not in points and d not in axes.values()],
        parts=parts,
        own=own,
        options={
            "points": points,
            "colourDimension": colour if colour in dims else None,
            "xScale": "log" if raw.get("x_scale") == "log" else "linear",
            "yScale": "log" if raw.get("y_scale") == "log" else "linear",
        },
    )


def _colour(spec: FigureSpec, name: str, dims: Sequence[str], own: dict[str, xr.DataArray]) -> str:
    """Check the variable of the colours; texts are written as people read them."""
    if is_text(variable(spec, name)):
        own[name] = _names(spec, name, dims)
    else:
        _beside(numbers(spec, name), dims)
    return name


def _names(spec: FigureSpec, name: str, dims: Sequence[str]) -> xr.DataArray:
    array = texts(spec, name)
    _beside(array, dims)
    plain = np.empty(array.shape, dtype=object)
    plain.ravel()[:] = [show_token(text) for text in array.values.ravel().tolist()]
    return array.copy(data=plain)


def _beside(array: xr.DataArray, dims: Sequence[str]) -> None:
    if extra := set(map(str, array.dims)) - set(dims):
        raise Problem(f"{array.name!r} has dimensions {sorted(extra)} beyond its points.")


def drawn_points(count: int, panels: int) -> np.ndarray:
    """Return which of `count` points of a panel are drawn: all, or a sample with a fixed seed.

    Examples
    --------
    >>> len(drawn_points(100, 1)), len(drawn_points(10_000, 2))
    (100, 1500)
    """
    room = max(POINTS_SHOWN // max(panels, 1), 1)
    if count <= room:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, room, replace=False))
