"""Which node and concept is meant, with messages that say what there is."""

from __future__ import annotations

from typing import Any

import xarray as xr

from ..errors import ArgumentError, suggestion
from ..report.choosing import listed, whole

MARK = "token_share"
"""Variable that a node has whose concepts are described."""


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
            raise ArgumentError(f"node must be one of {listed(there)}: several are described.")
        return there[0]
    if given in there:
        return str(given)
    known = "is not described (examples=0)" if given in tree.children else "is no node"
    raise ArgumentError(
        f"node {given!r} {known}; concepts are described in {listed(there)}."
        f"{suggestion(str(given), there)}"
    )


def concept_index(count: int, given: Any) -> int:
    """Return the number of a concept among `count`; negative ones count from the end."""
    number = whole(given)
    if number is not None and -count <= number < count:
        return number % count
    raise ArgumentError(f"index must be a whole number from 0 to {count - 1}; got {given!r}.")
