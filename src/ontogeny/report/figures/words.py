"""Word clouds read: the heaviest words of every group, and the tree that the groups form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ...figures.words import show_token
from ...words.catalogue.captions import CAPTIONS
from ...words.formats import plain_text
from .drawable import Drawable, Problem
from .fields import check_dimensions, numbers, texts, with_texts

CLOUDS_SHOWN = 200  # clouds of one figure that are shown

WORDS_SHOWN = 40  # words of one cloud that are shown; the papers' clouds have as many

PLACE = "place in cloud"  # dimension of the words that are shown, heaviest first

COUNT = "words in all"  # name of the array of how many words every cloud has


def read_words(drawable: Drawable) -> Drawable:
    """Read a figure of clouds: its words, cut to the heaviest and written as people read them."""
    figure = drawable.figure
    words = texts(drawable, figure.words)
    weight = numbers(drawable, figure.value)
    for name in filter(None, (figure.groups, figure.rank)):
        if name not in words.dims:
            raise Problem(f"{words.name!r} has no dimension {name!r}.")
    check_dimensions(weight, words.dims, "its words")
    if words.size == 0:
        raise Problem(f"{words.name!r} holds no words.")
    order, weights = _heaviest(words, weight, figure.rank)
    labels = {
        figure.value: _ranked(weights, order, figure.rank),
        figure.words: with_texts(_ranked(words, order, figure.rank), show_token),
        COUNT: np.isfinite(weights).sum(figure.rank).rename(COUNT),
    }
    for name in filter(None, (figure.heading, figure.context)):
        array = texts(drawable, name)
        check_dimensions(array, words.dims, "its words")
        if figure.rank in array.dims:
            whole = array.broadcast_like(words).transpose(*words.dims)
            array = _ranked(whole, order, figure.rank)
        labels.setdefault(name, array)  # the words themselves may be the context
    tree = _tree(drawable, words)
    more = CAPTIONS["clouds shown"].format(some=CLOUDS_SHOWN, all=f"{len(tree):,}")
    return replace(
        drawable,
        choose=[str(d) for d in words.dims if d not in (figure.groups, figure.rank)],
        extra=labels,
        tree=tree[:CLOUDS_SHOWN],
        notice=more if len(tree) > CLOUDS_SHOWN else "",
    )


def heaviest(drawable: Drawable) -> float:
    """Return the largest weight of a word, or 0."""
    return float(
        np.nanmax(np.abs(drawable.extra[drawable.figure.value].values), initial=0.0)
    )


def _heaviest(
    words: xr.DataArray, weight: xr.DataArray, rank: str
) -> tuple[np.ndarray, xr.DataArray]:
    """Return the places of the heaviest words along `rank`, and the weights of all words.

    A word without text or weight comes last and has no weight.
    """
    weights = weight.astype(float).broadcast_like(words).transpose(*words.dims)
    real = np.isfinite(weights.values) & (words.values.astype(object) != "")
    weights = weights.where(xr.DataArray(real, dims=words.dims))
    axis = words.get_axis_num(rank)
    size = np.where(real, np.abs(weights.values), -1.0)
    order = np.argsort(-size, axis=axis, kind="stable")
    return np.take(
        order, range(min(WORDS_SHOWN, order.shape[axis])), axis=axis
    ), weights


def _ranked(array: xr.DataArray, order: np.ndarray, rank: str) -> xr.DataArray:
    """Return an array in the order of the heaviest words."""
    taken = np.take_along_axis(array.values, order, array.get_axis_num(rank))
    return xr.DataArray(taken, dims=[PLACE if d == rank else d for d in array.dims])


def _tree(drawable: Drawable, words: xr.DataArray) -> list[list[int]]:
    """Return the groups in the order of drawing, each with its depth in the tree."""
    groups = drawable.figure.groups
    parent = drawable.figure.parent
    if groups is None:
        return [[0, 0]]
    count = words.sizes[groups]
    if not parent:
        return [[i, 0] for i in range(count)]
    above = texts(drawable, parent)
    if above.dims != (groups,):
        raise Problem(
            f"{parent!r} must have the dimension {groups!r} alone; it has {above.dims}."
        )
    return preorder(list(map(plain_text, words[groups].values)), above.values.tolist())


def preorder(labels: Sequence[str], parents: Sequence[str]) -> list[list[int]]:
    """Return places of `labels` with every parent before its children, and their depths.

    A label whose parent is unknown, or that is its own ancestor, counts as a root.

    Examples
    --------
    >>> preorder(["++", "+", "-", "+-"], ["+", "", "", "+"])
    [[1, 0], [0, 1], [3, 1], [2, 0]]
    """
    place = {label: i for i, label in enumerate(labels)}
    above = [place.get(parent) if parent else None for parent in parents]
    children: dict[int | None, list[int]] = {}
    for i, parent in enumerate(above):
        children.setdefault(None if _in_ring(i, above) else parent, []).append(i)
    order: list[list[int]] = []
    waiting = [[i, 0] for i in reversed(children.get(None, []))]
    while waiting:
        i, depth = waiting.pop()
        order.append([i, depth])
        waiting += [[child, depth + 1] for child in reversed(children.get(i, []))]
    return order


def _in_ring(start: int, above: Sequence[int | None]) -> bool:
    """Whether going up from `start` never ends."""
    seen: set[int] = set()
    at: int | None = start
    while at is not None and at not in seen:
        seen.add(at)
        at = above[at]
    return at is not None
