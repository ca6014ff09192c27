"""The noise of a value and of a change, by one rule for all quantities.

Whatever the cells hold becomes a standard error: of the mean over texts, as given, or from
replicates. An interval is 1.96 of them on each side, and of few texts or replicates as many as
Student's t asks for. So is the floor of a change since the first step, or to the last one, of the
standard error of the difference, paired over texts where each text has a value of its own. What was
not measured is NaN.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from ..quantities import Quantity
from ..tails import t_above, t_limit


def reference_index(data: xr.Dataset, relative_to: str = "reference") -> int | None:
    """Return the position along ``step`` that distances are taken to, or None where it is not."""
    if relative_to == "last":
        return data.sizes["step"] - 1
    reference_step = data.attrs.get("reference_step") if relative_to else None
    places = np.flatnonzero(data.step.values == reference_step)
    return int(places[0]) if len(places) else None


def at_reference(data: xr.Dataset, quantity: Quantity) -> xr.DataArray:
    """Return over ``step`` where the value is 0 by construction."""
    here = np.arange(data.sizes["step"]) == reference_index(data, quantity.relative_to)
    return xr.DataArray(here, dims="step", coords={"step": data.step})


# Smallest relative distance that float32 activations can show; rounding stays well below it.
MEASURABLE = 1e-5

Z = 1.96  # standard errors on each side of a 95 % interval


def with_noise(data: xr.Dataset, quantity: Quantity) -> xr.Dataset:
    """Add ``x_stderr``, ``x_low``, ``x_high`` and ``x_floor`` of a quantity where they are known.

    Ends of the interval that the cells hold, such as Wilson's, stay as they are.

    Examples
    --------
    >>> data = xr.Dataset({"x": ("step", [4.0, 2.0]), "x_stderr": ("step", [0.1, 0.1])})
    >>> noise = with_noise(data.assign_coords(step=[0, 1]), Quantity("x", "loss"))
    >>> noise.x_high.values.round(3), noise.x_floor.values.round(3)
    (array([4.196, 2.196]), array([0.277, 0.277]))
    """
    name = quantity.name
    if quantity.noise == "exact" or "step" not in data[name].dims:
        return data
    error = _stderr(data, quantity)
    if error is None:
        return data
    variables: dict[str, Any] = {f"{name}_stderr": error}
    half = _reach_of_texts(data, quantity, error) * error
    low = data[name] - half
    high = data[name] + half
    if quantity.minimum is not None:
        low = low.clip(min=quantity.minimum)
    for end, values in (("low", low), ("high", high)):
        if f"{name}_{end}" not in data:
            variables[f"{name}_{end}"] = values
    data = data.assign(variables)
    return data.assign({f"{name}_floor": change_floor(data, quantity)})


def change_floor(
    data: xr.Dataset, quantity: Quantity, *, to_last: bool = False
) -> xr.DataArray:
    """Return the noise of a change since the first step, over the dimensions of the value.

    One that is there already stays. NaN where it is unknown. Of exact quantities it is rounding
    alone, relative to the largest value. Distances to the reference, which are relative to norms,
    are not distinguishable from rounding below `MEASURABLE` either.

    With `to_last` it is that of a change to the last step. Late values of the same texts differ
    by less than first and late ones, so that the latter's noise would hide what is still learned.
    """
    value = data[quantity.name]
    measured = any(f"{quantity.name}_{of}" in data for of in ("of_text", "stderr"))
    if f"{quantity.name}_floor" in data and not (to_last and measured):
        return data[f"{quantity.name}_floor"].transpose(*value.dims)
    if quantity.noise == "exact":
        return MEASURABLE * abs(value).max("step").fillna(0.0) + xr.zeros_like(
            value
        ).fillna(0.0)
    usable = value.notnull() & ~at_reference(data, quantity)
    if f"{quantity.name}_of_text" in data:
        floor = Z * _paired_stderr(data, quantity, usable, to_last)
    elif f"{quantity.name}_stderr" in data:
        error = data[f"{quantity.name}_stderr"] + xr.zeros_like(value)
        floor = Z * (error**2 + _end(error, usable, to_last) ** 2) ** 0.5
    else:
        return xr.full_like(value, np.nan)
    if quantity.relative_to:
        floor = floor + MEASURABLE
    return (floor + xr.zeros_like(value)).transpose(*value.dims)


def mean_stderr(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the standard error of the weighted mean over the last axis (texts).

    Texts of weight 0 do not count. NaN where fewer than two count, or one that counts is NaN.

    Examples
    --------
    >>> float(mean_stderr(np.array([1.0, 3.0]), np.array([1, 1])))
    1.0
    """
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), np.shape(values))
    counted = weights > 0
    values = np.where(counted, values, 0.0)
    count = counted.sum(-1)
    total = weights.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (values * weights).sum(-1) / total
        spread = (((values - mean[..., None]) * weights) ** 2).sum(-1)
        error = np.sqrt(spread * count / (count - 1)) / total
    return np.where(count > 1, error, np.nan)


def p_below(values: np.ndarray, weights: np.ndarray, stretch: float = 1.0) -> float:
    """Return Student's p-value of a weighted mean (texts) below 0, the noise so much larger.

    NaN where the noise is unknown.

    Examples
    --------
    >>> round(p_below(np.array([-1.0, -3.0]), np.ones(2)), 3)
    0.148
    """
    error = float(mean_stderr(values, weights)) * stretch
    mean = float(np.average(values, weights=weights))
    if error == 0:
        return 0.0 if mean < 0 else 1.0
    return float(t_above(-mean / error, (weights > 0).sum() - 1))


def reach(count: npt.ArrayLike) -> np.ndarray:
    """Return how many standard errors a 95 % interval of the mean of `count` values reaches.

    1.96 of them called a quantity changed in 14 % of runs of four texts that did not change. NaN of
    one value, whose error is unknown.

    Examples
    --------
    >>> reach([2, 4, 100]).round(2)
    array([12.71,  3.18,  1.98])
    """
    return np.asarray(t_limit(0.025, np.asarray(count) - 1.0))


def stretched_stderr(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean over the last axis, stretched to Student's t."""
    return mean_stderr(values, weights) * reach((weights > 0).sum(-1)) / Z


def _stderr(data: xr.Dataset, quantity: Quantity) -> xr.DataArray | None:
    """Return the standard error of the value, by the first of the three ways that there is."""
    name = quantity.name
    if f"{name}_of_text" in data:
        of_text = data[f"{name}_of_text"].transpose(..., "text")
        error = mean_stderr(of_text.values, _weights(data, quantity, of_text).values)
        return of_text.isel(text=0, drop=True).copy(data=error)
    if f"{name}_stderr" in data:
        return data[f"{name}_stderr"]
    if f"{name}_replicates" in data:
        return _replicate_stderr(data, quantity)
    return None


def _reach_of_texts(
    data: xr.Dataset, quantity: Quantity, error: xr.DataArray
) -> xr.DataArray | float:
    """Return how many standard errors an interval reaches: by the number of texts, if it is known."""
    if f"{quantity.name}_of_text" not in data:
        return Z
    of_text = data[f"{quantity.name}_of_text"].transpose(..., "text")
    count = (_weights(data, quantity, of_text) > 0).sum("text")
    return error.copy(data=reach(count.transpose(*error.dims).values))


def _weights(
    data: xr.Dataset, quantity: Quantity, of_text: xr.DataArray
) -> xr.DataArray:
    """Return the weight of every text over the dimensions of `of_text`; 1 by default.

    0 at steps that are missing.
    """
    name = f"{quantity.name}_weights"
    if name not in data:
        return xr.where(of_text.notnull().any("step"), 1.0, 0.0).broadcast_like(of_text)
    return data[name].fillna(0.0).broadcast_like(of_text).transpose(*of_text.dims)


def _paired_stderr(
    data: xr.Dataset, quantity: Quantity, usable: xr.DataArray, to_last: bool
) -> xr.DataArray:
    """Return the standard error of the change from or to one end, paired over texts."""
    of_text = data[f"{quantity.name}_of_text"]
    # The texts say the same of several values.
    if not set(usable.dims) <= set(of_text.dims):
        of_text = of_text.broadcast_like(usable)
    of_text = of_text.transpose(..., "text")
    weights = _weights(data, quantity, of_text)
    end = _end(of_text, usable, to_last)
    error = stretched_stderr(
        (of_text - end).transpose(*of_text.dims).values, weights.values
    )
    there = (
        _end(weights, usable, to_last)
        .broadcast_like(weights)
        .transpose(*weights.dims)
        .values
    )
    same = (weights.values == there).all(-1)
    if not same.all():
        end = end.broadcast_like(of_text).transpose(*of_text.dims)
        other = _change_stderr(of_text.values, weights.values, end.values, there)
        error = np.where(same, error, other)
    return of_text.isel(text=0, drop=True).copy(data=error)


def _change_stderr(
    values: np.ndarray, weights: np.ndarray, others: np.ndarray, theirs: np.ndarray
) -> np.ndarray:
    """Return the error of the difference of two means with weights of their own, stretched."""
    change = _shares(values, weights) - _shares(others, theirs)
    count = ((weights > 0) | (theirs > 0)).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((change**2).sum(-1) * count / (count - 1)) * reach(count) / Z
    return np.where(count > 1, error, np.nan)


def _shares(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return by how much each text moves the weighted mean over the last axis."""
    values = np.where(weights > 0, values, 0.0)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (values * weights).sum(-1, keepdims=True) / total
        return (values - mean) * weights / total


def _end(values: xr.DataArray, usable: xr.DataArray, last: bool) -> xr.DataArray:
    """Return the values at the first or last step that is usable, which may differ by row."""
    backwards = usable.isel(step=slice(None, None, -1))
    at = (
        usable.sizes["step"] - 1 - backwards.argmax("step")
        if last
        else usable.argmax("step")
    )
    return values.isel(step=at).drop_vars("step", errors="ignore")


def _replicate_stderr(data: xr.Dataset, quantity: Quantity) -> xr.DataArray:
    """Return the standard error from replicates, pooled over the steps where there are any.

    Kinds of replicates are pooled apart and the noisiest counts: a solver that ignores its seed
    would dilute what resampling shows. A kind with a single replicate has no spread of its own, so
    that its distance from the value stands for it. Few replicates are stretched by Student's t.
    """
    deviation = data[f"{quantity.name}_replicates"] - data[quantity.name]
    labels = deviation["refit"].values if "refit" in deviation.coords else [""]
    kinds = np.array([str(label).split(" ")[0] for label in labels])
    kinds = (
        kinds
        if len(kinds) == deviation.sizes["refit"]
        else np.full(len(deviation.refit), "")
    )
    pooled = []
    for kind in dict.fromkeys(kinds):
        values = deviation.isel(refit=np.flatnonzero(kinds == kind))
        several = values.sizes["refit"] > 1
        spread = (
            values.var("refit", ddof=1)
            if several
            else values.isel(refit=0, drop=True) ** 2
        )
        freedom = spread.notnull().sum("step") * max(values.sizes["refit"] - 1, 1)
        stretch = xr.apply_ufunc(reach, freedom.where(freedom > 0) + 1) / Z
        pooled.append(spread.mean("step") ** 0.5 * stretch)
    return xr.concat(pooled, dim="kind").max("kind")


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
        low = values.min(draws)
        high = values.max(draws)
    else:
        with warnings.catch_warnings():  # of steps at which nothing was drawn
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            ends = values.quantile([0.025, 0.975], dim=draws, skipna=True)
        low, high = (ends.isel(quantile=i, drop=True) for i in (0, 1))
    return {
        f"{name}_low{form}": over_steps(low),
        f"{name}_high{form}": over_steps(high),
    }


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
