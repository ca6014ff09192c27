"""A figure's arrays as the page first shows them: one form, one label of what is left over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from ..colours import palettes, ramp_at
from ..content import Content
from ..table import NodeTable

__all__ = ["FigureView", "Panel", "span_of"]

DASHES = ("-", "--", ":", "-.")
Panel = tuple[str, dict[str, int]]
"""The title of one of the small multiples, and the places that it stands for."""


class FigureView:
    """What the drawing functions read.

    The relative form is taken where there is one. Of a dimension that the figure does not use, the
    last step or the first label is taken; ``chosen`` says so in words.
    """

    def __init__(self, figure: Mapping[str, Any], table: NodeTable, content: Content) -> None:
        self.figure = figure
        self.table = table
        self.content = content
        palette = palettes(len(content.groups.labels))["light"]
        self.base: Any = palette["base"]
        self.layers: Any = palette["layers"]
        self.ramp: Any = palette["values"]
        self.relative = figure["relative"] is not None
        self.absolute = table.arrays[figure["value"]]
        self.main = table.arrays[figure["relative"]] if self.relative else self.absolute
        self.fixed = {
            d: self.main.sizes[d] - 1 if table.axes[d]["kind"] == "step" else 0
            for d in figure["choose"]
        }

    @property
    def chosen(self) -> str:
        """What was taken along dimensions that the figure does not use."""
        return ", ".join(f"{d} {self.label(d, i)}" for d, i in self.fixed.items())

    @property
    def unit(self) -> str:
        """Unit of what is drawn; empty where it has none."""
        if self.relative:
            return str(self.figure["relativeLabel"])
        return "" if self.figure["units"] == "1" else str(self.figure["units"])

    @property
    def value_words(self) -> str:
        """What is drawn, with its unit."""
        label = str(self.figure["label"])
        return f"{label} ({self.unit})" if self.unit else label

    def dimension(self, use: str) -> str | None:
        """Dimension used as x, y, series, rows or facet."""
        return self.figure["axes"].get(use)

    def axis(self, use: str) -> Mapping[str, Any] | None:
        """Labels of the dimension used as `use`."""
        dimension = self.dimension(use)
        return self.table.axes[dimension] if dimension else None

    def label(self, dimension: str, i: int) -> str:
        """Name of one place along a dimension, short."""
        axis = self.table.axes[dimension]
        if axis["kind"] == "category":
            return str(axis["short"][i])
        value = axis["values"][i]
        return f"{value:,}" if axis["kind"] == "step" else str(value)

    def labels(self, use: str) -> list[str]:
        """Names of all places along the dimension used as `use`."""
        dimension = self.dimension(use)
        return (
            [self.label(dimension, i) for i in range(self.main.sizes[dimension])]
            if dimension
            else [""]
        )

    def panels(self) -> list[Panel]:
        """Return the small multiples."""
        facet = self.dimension("facet")
        if facet is None:
            return [("", {})]
        names = {"step": "step ", "number": f"{facet.replace('_', ' ')} "}
        what = names.get(self.table.axes[facet]["kind"], "")
        shown = self.figure["panels"] or range(self.main.sizes[facet])
        return [(what + self.label(facet, i), {facet: i}) for i in shown]

    def values(self, panel: Panel, *uses: str) -> np.ndarray:
        """Return the values of one panel along the dimensions used as `uses`, in float64."""
        return self._along(self.main, panel, uses)

    def paired(self, pair: list[int | None], panel: Panel, *uses: str) -> np.ndarray:
        """Return one end of a band or interval in the form that is drawn, in the shape of values.

        In relative form it is the result's own relative variable, or else scaled as the value is.
        """
        absolute, relative = pair
        array = self.table.arrays[absolute or 0]
        if relative is not None:
            array = self.table.arrays[relative]
        elif self.relative:
            with np.errstate(divide="ignore", invalid="ignore"):
                array = array * self.main / self.absolute
        return self._along(array.broadcast_like(self.main), panel, uses)

    def failed(self, panel: Panel, *uses: str) -> np.ndarray:
        """Return where a value is missing for a reason that the study recorded."""
        status = self.table.node.dataset.get("status")
        missing = ~np.isfinite(self.values(panel, *uses))
        if status is None or not set(status.dims) <= set(self.main.dims):
            return np.zeros_like(missing)
        bad = (status != "done").drop_vars(list(status.coords)).broadcast_like(self.main)
        return missing & self._along(bad, panel, uses).astype(bool)

    def _along(self, array: xr.DataArray, panel: Panel, uses: tuple[str, ...]) -> np.ndarray:
        places = {d: i for d, i in {**self.fixed, **panel[1]}.items() if d in array.dims}
        order = [d for d in map(self.dimension, uses) if d is not None]
        return np.asarray(array.isel(places).transpose(*order).values, dtype=float)

    def looks(self, use: str) -> list[tuple[str, str]]:
        """Colour and dash of every label of a dimension, as the page has them."""
        axis = self.axis(use)
        return [(self.base["ink"], "-")] if axis is None else self.looks_of(axis)

    def looks_of(self, axis: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Colour and dash of every label of an axis; with a reference, dashes are its own."""
        count = len(axis["values"])
        if "group" in axis:
            seen: dict[int, int] = {}
            return [self._layer_look(group, seen) for group in axis["group"]]
        if count <= len(DASHES) and "reference" not in self.figure["parts"]:
            return [(self.base["ink"], dash) for dash in DASHES[:count]]
        last = max(count - 1, 1)
        return [(ramp_at(self.ramp, 0.25 + 0.75 * i / last), "-") for i in range(count)]

    def _layer_look(self, group: int, seen: dict[int, int]) -> tuple[str, str]:
        """Modules of one depth share its colour and differ by dash."""
        seen[group] = seen.get(group, -1) + 1
        colour = self.layers[group] if group >= 0 else self.base["ink"]
        return colour, DASHES[seen[group] % len(DASHES)]


def span_of(arrays: list[np.ndarray], logarithmic: bool = False) -> tuple[float, float]:
    """Return ends of a value axis with some room; zero belongs to it where it is near."""
    known = [a[np.isfinite(a) & ((a > 0) | (not logarithmic))] for a in arrays]
    flat = np.concatenate([a.ravel() for a in known]) if known else np.empty(0)
    if not flat.size:
        return (0.1, 1.0) if logarithmic else (0.0, 1.0)
    low, high = float(flat.min()), float(flat.max())
    if logarithmic:
        room = 1.05 if low == high else (high / low) ** 0.05
        return low / room, high * room
    if low >= 0 and low < 0.4 * high:
        return 0.0, high * 1.06
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room
