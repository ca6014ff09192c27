"""Variables that a figure names, looked up in its node and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from .formats import plain_text
from .specs import FigureSpec, Problem, select

__all__ = ["is_text", "numbers", "texts", "variable", "within"]


def variable(spec: FigureSpec, name: Any) -> xr.DataArray:
    """Return a variable of the figure's node, with the figure's selection made."""
    if name not in spec.node.dataset.variables:
        raise Problem(f"The result has no variable {name!r}.")
    return select(spec.node.dataset[name], spec.select)


def is_text(array: xr.DataArray) -> bool:
    """Return whether an array holds texts; a reopened store gives them as objects."""
    return array.dtype.kind in "OUST"


def numbers(spec: FigureSpec, name: Any) -> xr.DataArray:
    """Return a variable that must hold numbers or truth values."""
    array = variable(spec, name)
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise Problem(f"{name!r} holds no numbers.")
    return array


def texts(spec: FigureSpec, name: Any) -> xr.DataArray:
    """Return a variable that must hold texts, as plain text; what is missing is empty."""
    array = variable(spec, name)
    if not is_text(array):
        raise Problem(f"{name!r} holds no texts.")
    words = [plain_text(v) if isinstance(v, str) else "" for v in array.values.ravel().tolist()]
    plain = np.empty(array.shape, dtype=object)
    plain.ravel()[:] = words
    return array.copy(data=plain)


def within(spec: FigureSpec, names: Sequence[str], value: xr.DataArray) -> tuple[str, ...]:
    """Check numbers that are drawn with `value`, so may have no dimensions but its own."""
    for name in names:
        extra = set(numbers(spec, name).dims) - set(value.dims)
        if extra:
            raise Problem(
                f"{name!r} has dimensions {sorted(map(str, extra))} beyond {value.name!r}."
            )
    return tuple(map(str, names))
