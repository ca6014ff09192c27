"""Which layers of different models stand beside one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ..words.formats import joined


def row_labels(node: xr.Dataset, layers: Sequence[str]) -> list[str]:
    """Return the labels of rows, with other names of their layers, which stand first in them.

    Labels of a result by an earlier version stay: their parts are not known.
    """
    labels = list(map(str, node["row"].values))
    if "row_name" not in node:
        return labels
    names = map(str, node["row_name"].values)
    pairs = zip(layers, names, labels, strict=True)
    return [
        " · ".join(filter(None, [layer, name])) if layer else label
        for layer, name, label in pairs
    ]


@dataclass(frozen=True)
class LayerMatch:
    """Layers that are compared: their labels, and the place of each in every run.

    ``words`` says how they were matched, where that is not by their names.
    """

    labels: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    words: str = ""


def match_layers(names: Sequence[Sequence[str]]) -> LayerMatch | None:
    """Return which layers of several runs are compared; None if they cannot be matched.

    Layers of the same names are the same; equally many are matched by their order; otherwise those
    of the run with the fewest are matched to the layers at the nearest relative depth,
    (i + ½) / L, in the others, kind by kind.

    Parameters
    ----------
    names
        For each run, the module paths of its layers.

    Examples
    --------
    >>> match_layers([["h.0", "h.1"], ["layers.0", "layers.1"]]).labels
    ('h.0', 'h.1')
    >>> match = match_layers(
    ...     [["h.0", "h.1"], ["h.0", "h.1", "h.2", "h.3", "h.4", "h.5"]]
    ... )
    >>> match.labels, match.places
    (('25 % of the depth', '75 % of the depth'), ((0, 1), (1, 4)))
    """
    everywhere = [tuple(map(str, layers)) for layers in names]
    first = everywhere[0]
    if all(set(layers) == set(first) for layers in everywhere):
        places = tuple(tuple(map(layers.index, first)) for layers in everywhere)
        return LayerMatch(first, places)
    if len({len(layers) for layers in everywhere}) == 1:
        places = (tuple(range(len(first))),) * len(everywhere)
        return LayerMatch(
            first, places, "Layers have other names and are compared in their order."
        )
    return _by_depth(everywhere)


def _by_depth(names: Sequence[tuple[str, ...]]) -> LayerMatch | None:
    kinds = [_kinds(layers) for layers in names]
    if len({len(of_run) for of_run in kinds}) > 1:
        return None
    labels: list[str] = []
    places: list[list[int]] = [[] for _ in names]
    for same in zip(*(of_run.items() for of_run in kinds), strict=True):
        count = min(len(members) for _, members in same)
        depths = (np.arange(count) + 0.5) / count
        kind = f" ({same[0][0]})" if len(kinds[0]) > 1 else ""
        labels += [f"{100 * depth:.0f} % of the depth{kind}" for depth in depths]
        for indices, (_, members) in zip(places, same, strict=True):
            theirs = (np.arange(len(members)) + 0.5) / len(members)
            indices += [
                members[int(np.argmin(np.abs(theirs - depth)))] for depth in depths
            ]
    counts = joined([str(len(layers)) for layers in names])
    words = (
        f"The runs have {counts} layers; those at the same relative depth are compared."
    )
    return LayerMatch(tuple(labels), tuple(map(tuple, places)), words)


def _kinds(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the layers of each kind: of paths that differ in their depth alone."""
    kinds: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        kinds.setdefault(re.sub(r"\d+", "*", name, count=1), []).append(place)
    return kinds


def with_layers(node: xr.Dataset, match: LayerMatch, run: int) -> xr.Dataset:
    """Return a run's node with the layers that are compared, under their common names."""
    if "layer" not in node.coords:
        return node
    paths = list(map(str, node["layer"].values))
    names = dict(
        zip((paths[place] for place in match.places[run]), match.labels, strict=True)
    )
    if "layer" in node.dims:
        node = node.isel(layer=list(match.places[run])).assign_coords(
            layer=list(match.labels)
        )
    if "row_layer" in node:
        names[""] = ""
        node = node.isel(
            row=[str(layer) in names for layer in node["row_layer"].values]
        )
        renamed = [names[str(layer)] for layer in node["row_layer"].values]
        rows = row_labels(node, renamed)
        node = node.assign_coords(row=np.array(rows, dtype=object))
        node = node.assign(row_layer=("row", np.array(renamed, dtype=object)))
    return node
