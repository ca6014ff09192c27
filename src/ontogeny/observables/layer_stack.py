"""Layers of any sizes as one dataset, one variable at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..scratch import let_go, scratch_array

_LARGE = 2**28  # bytes of a variable from which on it lies in a file


def layer_stack(paths: Sequence[str], pieces: list[xr.Dataset]) -> xr.Dataset:
    """Return pieces stacked along ``layer``, as an outer join by ``xarray.concat`` gives them.

    `pieces` is empty afterwards: the numbers of a layer are let go once their row is filled, so that
    memory holds those of one layer twice, where ``xarray.concat`` holds all of them three times.

    Raises
    ------
    ValueError
        If a dimension without labels has several sizes.

    Examples
    --------
    >>> two, none = xr.Dataset({"x": ("i", [1, 2])}, {"i": [0, 1]}), xr.Dataset()
    >>> layer_stack(["a", "b"], [two, none]).x.values.tolist()
    [[1.0, 2.0], [nan, nan]]
    """
    coords = _joined([piece.coords for piece in pieces])
    labels = [dict(piece.indexes) for piece in pieces]
    held = [
        {name: piece.variables[name] for name in piece.data_vars} for piece in pieces
    ]
    pieces.clear()
    names = dict.fromkeys(name for piece in held for name in piece)
    rows = {
        name: _stacked([piece.pop(name, None) for piece in held], labels, coords)
        for name in names
    }
    return xr.Dataset(rows, {"layer": np.array(paths, dtype=object), **coords})


def _joined(coords: Sequence[xr.Coordinates]) -> dict[Any, xr.DataArray]:
    """Return the labels of all layers."""
    if all(one.equals(coords[0]) for one in coords):
        return dict(coords[0]) if coords else {}
    labels: dict[Any, xr.DataArray] = {}
    for aligned in xr.align(*(xr.Dataset(coords=one) for one in coords), join="outer"):
        labels |= aligned.coords
    return labels


def _stacked(
    variables: list[xr.Variable | None],
    labels: Sequence[Mapping[Any, pd.Index]],
    coords: Mapping[Any, xr.DataArray],
) -> xr.Variable:
    """Return variables as the rows of one; `variables` holds None afterwards."""
    known = [variable for variable in variables if variable is not None]
    attrs = known[0].attrs
    sizes = dict(known[0].sizes)
    sizes |= {dim: len(coords[dim]) for dim in sizes if dim in coords}
    shape = (len(variables), *sizes.values())
    dtype = np.result_type(*(variable.dtype for variable in known))
    is_whole = all(v is not None and v.sizes == sizes for v in variables)
    del known
    fill = None if is_whole else _missing(dtype)
    stacked = _room(shape, dtype if fill is None else fill.dtype)
    for i, own in enumerate(labels):
        variable = variables[i]
        variables[i] = None
        if fill is not None:
            stacked[i, ...] = fill[0]
        if variable is None:
            continue
        places = [_places(dim, sizes[dim], own, coords) for dim in sizes]
        # With "...", as a text of no dimension would be stored within an array.
        stacked[(i, *_region(places), ...)] = variable.transpose(*sizes).values
        let_go(stacked)
    return xr.Variable(("layer", *sizes), stacked, attrs)


def _room(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an array to be filled; a large one lies in a file, as its rows did."""
    is_small = dtype.hasobject or math.prod(shape) * dtype.itemsize < _LARGE
    return np.empty(shape, dtype) if is_small else scratch_array(shape, dtype)


def _missing(dtype: np.dtype) -> np.ndarray:
    """Return what xarray puts where nothing is, of the type that holds it."""
    one = xr.DataArray(np.empty(1, dtype), {"row": [0]}, dims="row")
    return np.asarray(one.reindex(row=[1]).values)


def _places(
    dim: Any, size: int, own: Mapping[Any, pd.Index], coords: Mapping[Any, xr.DataArray]
) -> np.ndarray:
    """Return where the labels of a layer stand among those of all."""
    if dim not in own:
        return np.arange(size)
    return np.asarray(coords[dim].to_index().get_indexer(own[dim]))


def _region(places: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """Return an index of places in each dimension, by slices where all follow one another."""
    if any((np.diff(each) != 1).any() for each in places):
        return np.ix_(*places)
    return tuple(
        slice(each[0], each[0] + len(each)) if len(each) else slice(0)
        for each in places
    )
