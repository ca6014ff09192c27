"""What is stacked of large cells lies in a file, so that a merge of gigabytes needs no memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from ..scratch import scratch_array

LARGE = 64 * 2**20  # bytes of a variable over all cells, from which on it is stacked in a file


def large_variables(pieces: Sequence[xr.Dataset], large: int = LARGE) -> list[str]:
    """Return the names of numeric variables that are alike in all pieces and large together.

    Those with other lengths or labels in some pieces have to be aligned, which takes memory.
    """
    first = pieces[0]
    names = [
        str(name)
        for name, v in first.data_vars.items()
        if v.dtype.kind == "f" and v.nbytes * len(pieces) >= large
    ]
    return [name for name in names if all(_alike(first, piece, name) for piece in pieces)]


def _alike(first: xr.Dataset, other: xr.Dataset, name: str) -> bool:
    if name not in other:
        return False
    a, b = first[name], other[name]
    same = (a.dims, a.shape, a.dtype, a.attrs) == (b.dims, b.shape, b.dtype, b.attrs)
    return same and all(
        dim in first.indexes and dim in other.indexes and a.indexes[dim].equals(b.indexes[dim])
        if dim in first.indexes or dim in other.indexes
        else True
        for dim in a.dims
    )


def stacked_in_file(rows: Sequence[np.ndarray | None], folder: Path) -> np.ndarray:
    """Return rows of floats as one array that lies in a file of `folder`; None is a row of NaN.

    Examples
    --------
    >>> import tempfile
    >>> stacked_in_file([np.array([1.0, 2.0]), None], Path(tempfile.gettempdir()))
    array([[ 1.,  2.],
           [nan, nan]])
    """
    first = next(row for row in rows if row is not None)
    stacked = scratch_array((len(rows), *first.shape), first.dtype, folder)
    for i, row in enumerate(rows):
        stacked[i] = np.nan if row is None else row
    return stacked
