"""A figure of some layers and steps alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...words.content import LAYER_DIMENSIONS, Content
from ..axes import is_step
from ..choosing import chosen_steps, layer_paths
from ..drawable import Drawable


def of_layers(drawable: Drawable, layers: Any) -> Drawable:
    """Return a figure, not yet read, of some layers or weight blocks.

    Raises
    ------
    ArgumentError
        If it has no layers, or not these.
    """
    dims = _dimensions(drawable, lambda name: name in LAYER_DIMENSIONS, "layers")
    labels = {dim: drawable.node.dataset[dim].values.tolist() for dim in dims}
    return _with(drawable, {dim: layer_paths(own, layers) for dim, own in labels.items()})


def of_steps(drawable: Drawable, content: Content, steps: Any) -> tuple[Drawable, Content]:
    """Return a figure, not yet read, of some steps, and the result with its axis of steps cut.

    Raises
    ------
    ArgumentError
        If it has no steps, or not these.
    """
    dims = _dimensions(drawable, is_step, "steps")
    labels = {dim: drawable.node.dataset[dim].values.tolist() for dim in dims}
    chosen = {dim: chosen_steps(own, steps) for dim, own in labels.items()}
    kept = {step for own in chosen.values() for step in own}
    cut = replace(content, steps=tuple(step for step in content.steps if step in kept))
    return _with(drawable, chosen), cut


def _dimensions(drawable: Drawable, wanted: Callable[[str], bool], what: str) -> list[str]:
    """Return the dimensions of what a figure draws that are `wanted`."""
    data = drawable.node.dataset
    names = [name for name in drawable.figure.names() if name in data.variables]
    dims = dict.fromkeys(str(d) for name in names for d in data[name].dims if d in data.coords)
    if found := [dim for dim in dims if wanted(dim)]:
        return found
    held = ", ".join(dims) or "none"
    raise ArgumentError(f"{drawable.id!r} has no {what}; its dimensions are {held}.")


def _with(drawable: Drawable, chosen: Mapping[str, Sequence[Any]]) -> Drawable:
    data = drawable.node.dataset
    for dim, labels in chosen.items():
        data = data.isel({dim: np.flatnonzero(np.isin(data[dim].values, labels))})
    return replace(drawable, node=replace(drawable.node, dataset=data))
