"""Word clouds read: the heaviest words of every group, and the tree that the groups form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from ..figures import show_token
from .fields import numbers, texts
from .formats import plain_text
from .specs import FigureSpec, Problem

__all__ = ["CLOUDS_SHOWN", "PLACE", "WORDS_SHOWN", "preorder", "read_words"]

CLOUDS_SHOWN = 200
"""Clouds of one figure that are shown."""

WORDS_SHOWN = 40
"""Words of one cloud that are shown; the papers' clouds have as many."""

PLACE = "place in cloud"
"""Dimension of the words that are shown, heaviest first."""

_COUNT = "words in all"


def read_words(spec: FigureSpec, raw: Mapping[str, Any]) -> FigureSpec:
    """Read a figure of clouds: its words, cut to the heaviest and written as people read them."""
    words = texts(spec, raw.get("words"))
    weight = numbers(spec, raw.get("value"))
    axes = {use: str(raw[use]) for use in ("groups", "rank") if raw.get(use)}
    missing = [name for name in axes.values() if name not in words.dims]
    if "rank" not in axes:
        missing.append("rank")
    if missing:
        raise Problem(f"{words.name!r} has no dimension {missing[0]!r}.")
    if extra := set(weight.dims) - set(words.dims):
        raise Problem(f"{weight.name!r} has dimensions {sorted(map(str, extra))} beyond its words.")
    if words.size == 0:
        raise Problem(f"{words.name!r} holds no words.")
    parts = {"words": str(words.name), "count": _COUNT}
    own = _heaviest(words, weight, axes["rank"])
    for role in ("heading", "context"):
        if raw.get(role):
            parts[role] = str(raw[role])
            beside = _beside(texts(spec, raw[role]), words, axes["rank"], weight)
            own.setdefault(parts[role], beside)  # the words themselves may be the context
    groups = axes.get("groups")
    shown = own[str(weight.name)]
    known = np.abs(shown.values[np.isfinite(shown.values)])
    tree = _tree(spec, raw.get("parent"), words, groups)
    more = f"The first {CLOUDS_SHOWN} of {len(tree):,} clouds shown."
    return replace(
        spec,
        value=str(weight.name),
        axes={"groups": groups} if groups else {},
        choose=[str(d) for d in words.dims if d not in axes.values()],
        parts=parts,
        own=own,
        options={
            "heaviest": float(known.max()) if known.size else 0.0,
            "tree": tree[:CLOUDS_SHOWN],
            "nested": bool(raw.get("parent")),
        },
        notice=more if len(tree) > CLOUDS_SHOWN else "",
    )


def _order(words: xr.DataArray, weight: xr.DataArray, rank: str) -> tuple[Any, Any]:
    """Return the places of the heaviest words along `rank`, and the weights of all words.

    A word without text or weight comes last and has no weight.
    """
    weights = weight.astype(float).broadcast_like(words).transpose(*words.dims)
    real = np.isfinite(weights.values) & (words.values.astype(object) != "")
    weights = weights.where(xr.DataArray(real, dims=words.dims))
    axis = words.get_axis_num(rank)
    size = np.where(real, np.abs(weights.values), -1.0)
    order = np.argsort(-size, axis=axis, kind="stable")
    return np.take(order, range(min(WORDS_SHOWN, order.shape[axis])), axis=axis), weights


def _taken(array: xr.DataArray, order: np.ndarray, axis: int, rank: str) -> xr.DataArray:
    dims = [PLACE if d == rank else d for d in array.dims]
    coords = {d: array[d].values for d in array.dims if d in array.coords and d != rank}
    return xr.DataArray(np.take_along_axis(array.values, order, axis), coords, dims, array.name)


def _heaviest(words: xr.DataArray, weight: xr.DataArray, rank: str) -> dict[str, xr.DataArray]:
    """Return words and weights, heaviest first, and how many words every group has in all."""
    order, weights = _order(words, weight, rank)
    axis = words.get_axis_num(rank)
    own = _taken(words, order, axis, rank)
    weights = weights.assign_coords({d: words[d] for d in words.dims if d in words.coords})
    count = np.isfinite(weights).sum(rank)
    return {
        str(words.name): _shown(own),
        str(weight.name): _taken(weights, order, axis, rank),
        _COUNT: count.rename(_COUNT),
    }


def _beside(
    array: xr.DataArray, words: xr.DataArray, rank: str, weight: xr.DataArray
) -> xr.DataArray:
    """Return texts that go with words in the words' order, those of whole groups as they are."""
    if extra := set(array.dims) - set(words.dims):
        raise Problem(f"{array.name!r} has dimensions {sorted(map(str, extra))} beyond its words.")
    if rank not in array.dims:
        return array
    order, _ = _order(words, weight, rank)
    whole = array.broadcast_like(words).transpose(*words.dims)
    return _taken(whole, order, words.get_axis_num(rank), rank)


def _shown(array: xr.DataArray) -> xr.DataArray:
    plain = np.empty(array.shape, dtype=object)
    plain.ravel()[:] = [show_token(text) for text in array.values.ravel().tolist()]
    return array.copy(data=plain)


def _tree(
    spec: FigureSpec, parent: Any, words: xr.DataArray, groups: str | None
) -> list[list[int]]:
    """Return the groups in the order of drawing, each with its depth in the tree."""
    if groups is None:
        return [[0, 0]]
    count = words.sizes[groups]
    if not parent:
        return [[i, 0] for i in range(count)]
    above = texts(spec, parent)
    if above.dims != (groups,):
        raise Problem(f"{parent!r} must have the dimension {groups!r} alone; it has {above.dims}.")
    labels = words[groups].values if groups in words.coords else np.arange(count)
    return preorder([plain_text(label) for label in labels], above.values.tolist())


def preorder(labels: Sequence[str], parents: Sequence[str]) -> list[list[int]]:
    """Return places of `labels` with every parent before its children, and their depths.

    A label whose parent is unknown, or that is its own ancestor, counts as a root.

    Examples
    --------
    >>> preorder(["++", "+", "-", "+-"], ["+", "", "", "+"])
    [[1, 0], [0, 1], [3, 1], [2, 0]]
    """
    place = {label: i for i, label in enumerate(labels)}
    children: dict[int, list[int]] = {}
    roots = []
    for i, parent in enumerate(parents):
        above = place.get(parent) if parent else None
        if above is None or _under(above, i, place, parents):
            roots.append(i)
        else:
            children.setdefault(above, []).append(i)
    order: list[list[int]] = []
    waiting = [[i, 0] for i in reversed(roots)]
    while waiting:
        i, depth = waiting.pop()
        order.append([i, depth])
        waiting += [[child, depth + 1] for child in reversed(children.get(i, []))]
    return order


def _under(start: int, wanted: int, place: Mapping[str, int], parents: Sequence[str]) -> bool:
    """Whether going up from `start` leads to `wanted`, or round in a ring."""
    seen = set()
    at: int | None = start
    while at is not None and at not in seen:
        if at == wanted:
            return True
        seen.add(at)
        at = place.get(parents[at]) if parents[at] else None
    return at is not None
