"""The figures that follow from declared quantities: curves with intervals and null bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..figures import Band, Curves
from ..quantities import Quantity


def default_figures(data: xr.Dataset, quantities: Sequence[Quantity]) -> list[Curves]:
    """Return the curves of every quantity that is drawn and has a value at steps.

    Examples
    --------
    >>> data = xr.Dataset({"x": (("step", "layer"), np.ones((2, 3)))})
    >>> (figure,) = default_figures(data, [Quantity("x", "norm")])
    >>> figure.title, figure.series, figure.interval
    ('Norm', 'layer', None)
    """
    return [figure for q in quantities for figure in _figures(data, q)]


def _figures(data: xr.Dataset, quantity: Quantity) -> Iterator[Curves]:
    name = quantity.name
    if not quantity.figure or name not in data or "step" not in data[name].dims:
        return
    if not quantity.each:
        yield _curves(data, quantity, name, {})
        return
    for label in map(str, data[quantity.each].values):
        yield _curves(data, quantity, label, {quantity.each: label})


def _curves(data: xr.Dataset, quantity: Quantity, label: str, at: dict[str, Any]) -> Curves:
    name, select = quantity.name, {**quantity.select, **at}
    dims = [str(d) for d in data[name].dims if d != "step" and d not in select]
    series = quantity.series
    if series is None:
        series = "layer" if "layer" in dims else next(iter(dims), "")
    facet = quantity.facet
    if "run" in dims:  # one line a run, one panel for what was a line or a panel
        series, facet = "run", facet or (series if series != "run" else None)
    free = [d for d in dims if d != series]
    return Curves(
        label.replace("_", "-"),
        quantity.heading_of(at.get(quantity.each, "")),
        value=name,
        caption=_caption(data, quantity),
        relative=quantity.share,
        relative_label=quantity.share_of,
        facet=facet or next(iter(free), None),
        select=select,
        series=series or None,
        interval=(f"{name}_low", f"{name}_high") if f"{name}_low" in data else None,
        bands=list(_bands(data, quantity, select)),
        y_scale=quantity.y_scale,
    )


def _bands(data: xr.Dataset, quantity: Quantity, select: dict[str, Any]) -> Iterator[Band]:
    """Give a band for each null that has a value where the figure is drawn."""
    for null, label in quantity.nulls.items():
        name = f"{quantity.name}_{null}"
        low, high = (f"{name}_low", f"{name}_high") if f"{name}_low" in data else (name, name)
        if low in data:
            chosen = data[low].sel({k: v for k, v in select.items() if k in data[low].dims})
            if np.isfinite(chosen.values).any():
                yield Band(low, high, label)


def _caption(data: xr.Dataset, quantity: Quantity) -> str:
    """Return the caption, which ends with what the shade is where the noise is a standard error."""
    if f"{quantity.name}_stderr" not in data or "shade" in quantity.caption.lower():
        return quantity.caption
    shade = f"Shade: ±1.96 standard errors over {quantity.unit}."
    return f"{quantity.caption} {shade}".strip()
