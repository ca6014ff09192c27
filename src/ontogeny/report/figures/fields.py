"""Variables that a figure names, checked, and the labels along their dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...words.content import LAYER_DIMENSIONS
from ...words.formats import plain_text
from ...words.labels import LayerGroups, short_names
from ..scales import StepScale
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
    return with_texts(array, lambda text: plain_text(text) if isinstance(text, str) else "")


def with_texts(array: xr.DataArray, change: Callable[[Any], str]) -> xr.DataArray:
    """Return an array of texts with each of them changed."""
    changed = np.empty(array.shape, dtype=object)
    changed.ravel()[:] = [change(text) for text in array.values.ravel().tolist()]
    return array.copy(data=changed)


def check_dimensions(array: xr.DataArray, allowed: Sequence[Any], whose: str) -> None:
    """Check that an array has no dimensions but those of what it is drawn with."""
    if extra := sorted({str(d) for d in array.dims} - {str(d) for d in allowed}):
        raise Problem(f"{array.name!r} has dimensions {extra} beyond {whose}.")


@dataclass(frozen=True)
class Axis:
    """Labels of a dimension: ``kind`` is ``"step"``, ``"number"`` or ``"category"``.

    Categories have short names, module paths also the chips of the layer selector.
    """

    kind: str
    values: Sequence[Any]
    short: Sequence[str] = ()
    group: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def label(self, i: int) -> str:
        """Return one label, short."""
        if self.kind == "category":
            return self.short[i]
        value = self.values[i]
        return f"{value:,}" if isinstance(value, int) else str(value)

    def places(self, scale: StepScale) -> np.ndarray:
        """Return where the labels lie on their axis; steps between 0 and 1."""
        if self.kind == "step":
            return scale.positions(self.values).round(5)
        values = self.values if self.kind == "number" else range(len(self))
        return np.asarray(values, dtype=float)

    def edges(self, scale: StepScale) -> np.ndarray:
        """Return the left and right edge of each label's cell, shape (n, 2)."""
        if self.kind == "step":
            return scale.edges(self.values).round(5)
        middles = np.arange(len(self), dtype=float)
        return np.stack([middles - 0.5, middles + 0.5], axis=1)


def is_step(dimension: str) -> bool:
    """Return whether a dimension counts training steps (``step``, or ``step_`` of a matrix).

    Examples
    --------
    >>> is_step("step_"), is_step("layer")
    (True, False)
    """
    return dimension.rstrip("_") == "step"


def read_axis(dimension: str, labels: np.ndarray, groups: LayerGroups) -> Axis:
    """Return the axis of a dimension with these labels."""
    if is_step(dimension) and labels.dtype.kind in "iuf":
        return Axis("step", labels.astype(int).tolist())
    if labels.dtype.kind in "iuf" and np.isfinite(labels).all():
        return Axis("number", labels.tolist())
    names = [plain_text(label) for label in labels]
    group = [groups.of(name) for name in names] if dimension in LAYER_DIMENSIONS else None
    return Axis("category", names, short_names(names), group)
