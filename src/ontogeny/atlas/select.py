"""Which node, layer, concept and step is meant, with messages that say what there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..errors import ArgumentError, suggestion
from ..report.labels import short_names

MARK = "token_share"
"""Variable that a node has whose concepts are described."""
_SHOWN = 12


def described(tree: xr.DataTree) -> list[str]:
    """Return the names of the nodes whose concepts are described."""
    return [name for name, node in tree.children.items() if MARK in node.data_vars]


def node_name(tree: xr.DataTree, given: str | None) -> str:
    """Return the node that is meant; None means the only one that is described."""
    there = described(tree)
    if not there:
        raise ArgumentError(
            "this result describes no concepts; the observables 'joint-concepts' and, with "
            "examples=4, 'concepts' do."
        )
    if given is None:
        if len(there) > 1:
            raise ArgumentError(f"node must be one of {_listed(there)}: several are described.")
        return there[0]
    if given in there:
        return str(given)
    known = "is not described (examples=0)" if given in tree.children else "is no node"
    raise ArgumentError(
        f"node {given!r} {known}; concepts are described in {_listed(there)}."
        f"{suggestion(str(given), there)}"
    )


def layer_path(paths: Sequence[str], given: Any) -> str:
    """Return the module path that a layer's number, path or short name means.

    A number is the one in the path, such as 3 in ``model.layers.3.mlp``; negative ones count
    layers from the end. None means the only layer.

    Examples
    --------
    >>> layer_path(["model.layers.0.mlp", "model.layers.12.mlp"], 12)
    'model.layers.12.mlp'
    """
    paths = [str(path) for path in paths]
    if given is None and len(paths) == 1:
        return paths[0]
    short = short_names(paths)
    there = _listed(list(dict.fromkeys([*short, *paths])) if len(paths) < 7 else short)
    number = _whole(given)
    if number is not None:
        if -len(paths) <= number < 0:
            return paths[number]
        found = [p for p in paths if str(number) in p.partition("#")[0].split(".")]
    else:
        pairs = zip(paths, short, strict=True)
        found = [p for p, name in pairs if str(given) in (p, name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ArgumentError(f"layer {given!r} may be any of {_listed(found)}; give its path.")
    near = suggestion(str(given), [*short, *paths]) if isinstance(given, str) else ""
    raise ArgumentError(f"layer must be one of {there}; got {given!r}.{near}")


def concept_index(count: int, given: Any) -> int:
    """Return the number of a concept among `count`; negative ones count from the end."""
    number = _whole(given)
    if number is not None and -count <= number < count:
        return number % count
    raise ArgumentError(f"index must be a whole number from 0 to {count - 1}; got {given!r}.")


def step_position(steps: Sequence[int], given: Any) -> int:
    """Return the position of a training step; negative numbers count from the end.

    Examples
    --------
    >>> step_position([0, 100, 200], -1), step_position([0, 100, 200], 100)
    (2, 1)
    """
    steps = [int(step) for step in steps]
    number = _whole(given)
    if number is not None and -len(steps) <= number < 0:
        return len(steps) + number
    if number in steps:
        return steps.index(number)
    hint = "" if number is None else f" The nearest is {min(steps, key=lambda s: abs(s - number))}."
    raise ArgumentError(
        f"step must be one of the result's {len(steps)} steps, {_listed(steps)}, or an index from "
        f"{-len(steps)} to -1; got {given!r}.{hint}"
    )


def _whole(given: Any) -> int | None:
    """Return a whole number as such; None for anything else."""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    return int(given) if whole else None


def _listed(names: Sequence[Any]) -> str:
    """Return names as a message lists them; of many the first and the last."""
    shown = [repr(name) if isinstance(name, str) else str(name) for name in names]
    if len(shown) > _SHOWN:
        shown = [*shown[: _SHOWN - 2], "...", shown[-1]]
    return ", ".join(shown)
