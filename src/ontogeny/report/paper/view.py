"""A figure's arrays as the page first shows them: one form, one label of what is left over."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from ...words.content import Content
from ..colours import palettes, ramp_at
from ..figures.axes import Axis
from ..figures.drawable import Drawable
from ..scales import StepScale

DASHES = ("-", "--", ":", "-.")
Panel = tuple[str, dict[str, int]]
"""The title of one of the small multiples, and the places that it stands for."""


class FigureView:
    """What the drawing functions read.

    The relative form is taken where there is one. Of a dimension that the figure does not use, the
    last step or the first label is taken; ``chosen`` says so in words. ``ax`` is the caller's own
    axes, where one panel is drawn on them.
    """

    def __init__(
        self, drawable: Drawable, content: Content, ax: Axes | None = None
    ) -> None:
        self.drawable = drawable
        self.ax = ax
        self.figure: Any = drawable.figure
        self.content = content
        self.scale = StepScale(content.steps)
        palette = palettes(len(content.groups.labels))["light"]
        self.base: Any = palette["base"]
        self.layers: Any = palette["layers"]
        middle = getattr(self.figure, "middle", None)
        self.ramp: Any = palette["values" if middle is None else "diverging"]
        self.marks: Any = palette["marks"]
        self.absolute = self._array(self.figure.value)
        self.main = self._array(self.figure.relative or self.figure.value)
        self._axes: dict[str, Axis] = {}
        self.fixed = {
            d: self.main.sizes[d] - 1 if self.axis_of(d).kind == "step" else 0
            for d in drawable.choose
        }

    @property
    def chosen(self) -> str:
        """What was taken along dimensions that the figure does not use."""
        return ", ".join(
            f"{d} {self.axis_of(d).label(i)}" for d, i in self.fixed.items()
        )

    @property
    def value_words(self) -> str:
        """What is drawn, with its unit."""
        if not self.figure.relative:
            return self.drawable.words(self.figure.value)
        unit = self.figure.relative_label or "relative"
        return f"{self.drawable.label(self.figure.value)} ({unit})"

    def axis_of(self, dimension: str) -> Axis:
        """Labels along a dimension."""
        if dimension not in self._axes:
            self._axes[dimension] = self.drawable.axis(dimension)
        return self._axes[dimension]

    def dimension(self, use: str) -> str | None:
        """Dimension used as x, y, series, rows or facet."""
        return self.drawable.axes.get(use)

    def axis(self, use: str) -> Axis:
        """Labels of the dimension used as `use`, which the figure must have."""
        return self.axis_of(self.drawable.axes[use])

    def axis_words(self, use: str) -> str:
        """Name of the dimension used as `use`."""
        return (
            self.content.voice.clock
            if self.axis(use).kind == "step"
            else self.drawable.axes[use].replace("_", " ")
        )

    def labels(self, use: str) -> list[str]:
        """Names of all places along the dimension used as `use`, one empty name without it."""
        if self.dimension(use) is None:
            return [""]
        axis = self.axis(use)
        return [axis.label(i) for i in range(len(axis))]

    @cached_property
    def panels(self) -> list[Panel]:
        """The small multiples."""
        facet = self.dimension("facet")
        if facet is None:
            return [("", {})]
        axis = self.axis_of(facet)
        names = {
            "step": f"{self.content.voice.unit} ",
            "number": f"{facet.replace('_', ' ')} ",
        }
        what = names.get(axis.kind, "")
        places = self.drawable.panels or range(len(axis))
        return [(what + axis.label(i), {facet: i}) for i in places]

    def values(self, panel: Panel, *uses: str) -> np.ndarray:
        """Return the values of one panel along the dimensions used as `uses`, in float64.

        A use without a dimension, such as a series where there is one line, has length 1.
        """
        return self._along(self.main, panel, uses)

    def companion(self, name: str, panel: Panel, *uses: str) -> np.ndarray:
        """Return one end of a band or interval in the form that is drawn, in the shape of values.

        In relative form it is the result's own relative variable, or else scaled as the value is.
        """
        relative = self.drawable.relative_name(name)
        array = self._array(relative or name)
        if self.figure.relative and not relative:
            with np.errstate(divide="ignore", invalid="ignore"):
                array = array * self.main / self.absolute
        return self._along(array.broadcast_like(self.main), panel, uses)

    def failed(self, panel: Panel, *uses: str) -> np.ndarray:
        """Return where a value is missing for a reason that the study recorded."""
        status = self.drawable.node.dataset.get("status")
        missing = ~np.isfinite(self.values(panel, *uses))
        if status is None or not set(status.dims) <= set(self.main.dims):
            return np.zeros_like(missing)
        bad = (
            (status != "done").drop_vars(list(status.coords)).broadcast_like(self.main)
        )
        return missing & self._along(bad, panel, uses).astype(bool)

    def at(self, name: str, panel: Panel) -> xr.DataArray:
        """Return a variable in one panel, at the labels taken of dimensions left over."""
        return self._at(self._array(name), panel)

    def _array(self, name: str) -> xr.DataArray:
        """Return a variable without labels, so that arrays are joined by place."""
        array = self.drawable.array(name)
        return array.drop_vars(list(array.coords))

    def _at(self, array: xr.DataArray, panel: Panel) -> xr.DataArray:
        places = {**self.fixed, **panel[1]}
        return array.isel({d: i for d, i in places.items() if d in array.dims})

    def _along(
        self, array: xr.DataArray, panel: Panel, uses: tuple[str, ...]
    ) -> np.ndarray:
        order = [self.dimension(use) or use for use in uses]
        selection = self._at(array, panel)
        whole = selection.expand_dims([d for d in order if d not in selection.dims])
        return np.asarray(whole.transpose(*order).values, dtype=float)

    def looks(self, use: str) -> list[tuple[str, str]]:
        """Colour and dash of every label of a dimension, as the page has them."""
        if self.dimension(use) is None:
            return [(self.base["ink"], "-")]
        return self.looks_of(self.axis(use))

    def looks_of(self, axis: Axis) -> list[tuple[str, str]]:
        """Colour of every label of an axis, and its dash where a few tell it in black and white.

        With a reference, dashes are its own.
        """
        count = len(axis)
        if axis.group is not None:
            seen: dict[int, int] = {}
            return [self._layer_look(group, seen) for group in axis.group]
        dashed = count <= len(DASHES) and not getattr(self.figure, "reference", None)
        if count == 1:
            return [(self.base["ink"], "-")]
        return [
            (ramp_at(self.marks, i / (count - 1)), DASHES[i] if dashed else "-")
            for i in range(count)
        ]

    def _layer_look(self, group: int, seen: dict[int, int]) -> tuple[str, str]:
        """Modules of one depth share its colour and differ by dash."""
        seen[group] = seen.get(group, -1) + 1
        colour = self.layers[group] if group >= 0 else self.base["ink"]
        return colour, DASHES[seen[group] % len(DASHES)]


def norm_of(values: np.ndarray, middle: float | None = None) -> Normalize:
    """Return the scale of colours over all values; one value alone lies in its middle.

    With a `middle` both halves are as long.
    """
    finite = values[np.isfinite(values)]
    low, high = (
        (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    )
    if middle is not None:
        half = max(middle - low, high - middle)
        low, high = middle - half, middle + half
    room = 0.5 if low == high else 0.0
    return Normalize(low - room, high + room)


def span_of(arrays: list[np.ndarray], logarithmic: bool = False) -> tuple[float, float]:
    """Return ends of a value axis with some room; zero belongs to it where it is near."""
    finite = [a[np.isfinite(a) & ((a > 0) | (not logarithmic))] for a in arrays]
    flat = np.concatenate([a.ravel() for a in finite]) if finite else np.empty(0)
    if not flat.size:
        return (0.1, 1.0) if logarithmic else (0.0, 1.0)
    low = float(flat.min())
    high = float(flat.max())
    if logarithmic:
        room = 1.05 if low == high else (high / low) ** 0.05
        return low / room, high * room
    if low >= 0 and low < 0.4 * high:
        return 0.0, high * 1.06
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room
