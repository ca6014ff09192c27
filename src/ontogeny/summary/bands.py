"""What nulls give, as bands under the curves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr

from ..quantities import Quantity

_FEW = 20  # draws, below which the 2.5 % point is no more than the smallest of them


def null_bands(data: xr.Dataset, quantity: Quantity) -> xr.Dataset:
    """Add ``x_<null>_low`` and ``x_<null>_high`` for every null with draws.

    95 % of the draws, or their range where there are fewer than 20. Draws that were taken at some
    steps only hold for the steps between. A null without draws is a line and needs no band.
    """
    for null in quantity.nulls:
        name = f"{quantity.name}_{null}"
        if name not in data or f"{name}_low" in data:
            continue
        draws = [dim for dim in data[name].dims if dim not in data[quantity.name].dims]
        if not draws:
            continue
        data = data.assign(band_of_draws(data[name], draws, name))
        share = f"{quantity.share}_{null}"
        if share in data:  # the band of the figure's other form
            data = data.assign(band_of_draws(data[share], draws, name, "_relative"))
    return data


def band_of_draws(
    values: xr.DataArray, draws: list[Any], name: str, form: str = ""
) -> dict[str, Any]:
    """Return the lower and upper end over `draws`, under the names of the null."""
    if int(np.prod([values.sizes[dim] for dim in draws])) < _FEW:
        low, high = values.min(draws), values.max(draws)
    else:
        with warnings.catch_warnings():  # of steps at which nothing was drawn
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            ends = values.quantile([0.025, 0.975], dim=draws, skipna=True)
        low, high = (ends.isel(quantile=i, drop=True) for i in (0, 1))
    return {f"{name}_low{form}": over_steps(low), f"{name}_high{form}": over_steps(high)}


def over_steps(values: xr.DataArray) -> xr.DataArray:
    """Interpolate over the order of the steps; beyond the measured ones the nearest holds.

    Examples
    --------
    >>> over_steps(xr.DataArray([np.nan, 1.0, np.nan, 3.0], dims="step")).values
    array([1., 1., 2., 3.])
    """
    if "step" not in values.dims:
        return values
    moved = values.transpose(..., "step")
    table = moved.values.reshape(-1, moved.sizes["step"])
    order = np.arange(table.shape[1])
    filled = np.full(table.shape, np.nan)
    for row, target in zip(table, filled, strict=True):
        is_finite = np.isfinite(row)
        if is_finite.any():
            target[:] = np.interp(order, order[is_finite], row[is_finite])
    return moved.copy(data=filled.reshape(moved.shape))
