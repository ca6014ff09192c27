"""The labels along a dimension: training steps, numbers, or names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...words.formats import plain_text
from ...words.labels import LayerGroups, short_names
from ...words.nodes import LAYER_DIMENSIONS
from ..scales import StepScale


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
    group = (
        [groups.of(name) for name in names] if dimension in LAYER_DIMENSIONS else None
    )
    return Axis("category", names, short_names(names), group)
