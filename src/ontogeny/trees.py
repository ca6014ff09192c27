"""A merged result, however it is held: the one place that takes a result apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import xarray as xr

from .errors import ArgumentError


class HoldsTree(Protocol):
    """A result that holds its numbers as ``.tree``, as `Study.run` returns it."""

    @property
    def tree(self) -> xr.DataTree:
        """The numbers."""


MergedResult = HoldsTree | xr.DataTree  # what functions of a merged result take
Nodes = Mapping[str, xr.Dataset]
"""The nodes of a result by their names."""


def as_tree(result: object) -> xr.DataTree:
    """Return the DataTree of a merged result: of what holds it as ``.tree``, or the tree itself.

    Raises
    ------
    ArgumentError
        If `result` is neither.

    Examples
    --------
    >>> tree = xr.DataTree.from_dict({"loss": xr.Dataset()})
    >>> as_tree(tree) is tree
    True
    >>> as_tree("studies/mine")
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: tree must be a result of Study.run or open_study, or its \
xarray.DataTree; got str.
    """
    tree = result if isinstance(result, xr.DataTree) else getattr(result, "tree", None)
    if isinstance(tree, xr.DataTree):
        return tree
    raise ArgumentError(
        "tree must be a result of Study.run or open_study, or its xarray.DataTree; got "
        f"{type(result).__name__}."
    )


def found_in(data: xr.Dataset, name: str, default: Any = None) -> Any:
    """Return a variable of a node, or the default where there is none.

    xarray's own ``get`` looks for names that are alike before it gives the default, which takes
    hundreds of times as long.

    Examples
    --------
    >>> found_in(xr.Dataset({"loss": 2.5}), "loss_low") is None
    True
    """
    if name not in data:
        return default
    return data[name]
