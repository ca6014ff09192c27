"""Variables that a figure names, looked up in its node and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...words.formats import plain_text
from .drawable import Drawable, Problem


def variable(drawable: Drawable, name: Any) -> xr.DataArray:
    """Return a variable of the figure's node, with the figure's selection made."""
    if name not in drawable.node.dataset.variables:
        raise Problem(f"The result has no variable {name!r}.")
    return drawable.selected(name)


def is_text(array: xr.DataArray) -> bool:
    """Return whether an array holds texts; a reopened store gives them as objects."""
    return array.dtype.kind in "OUST"


def numbers(drawable: Drawable, name: Any) -> xr.DataArray:
    """Return a variable that must hold numbers or truth values."""
    array = variable(drawable, name)
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise Problem(f"{name!r} holds no numbers.")
    return array


def texts(drawable: Drawable, name: Any) -> xr.DataArray:
    """Return a variable that must hold texts, as plain text; what is missing is empty."""
    array = variable(drawable, name)
    if not is_text(array):
        raise Problem(f"{name!r} holds no texts.")
    return with_texts(
        array, lambda text: plain_text(text) if isinstance(text, str) else ""
    )


def with_texts(array: xr.DataArray, change: Callable[[Any], str]) -> xr.DataArray:
    """Return an array of texts with each of them changed."""
    changed = np.empty(array.shape, dtype=object)
    changed.ravel()[:] = [change(text) for text in array.values.ravel().tolist()]
    return array.copy(data=changed)


def check_dimensions(array: xr.DataArray, allowed: Sequence[Any], whose: str) -> None:
    """Check that an array has no dimensions but those of what it is drawn with."""
    if extra := sorted({str(d) for d in array.dims} - {str(d) for d in allowed}):
        raise Problem(f"{array.name!r} has dimensions {extra} beyond {whose}.")
