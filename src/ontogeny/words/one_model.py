"""What is said of a model that has one checkpoint: what it is, beside what chance gives; no course.

A value stands above or below a null where its interval lies past all of the null's draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import xarray as xr

from ..claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ..quantities import Quantity


def is_one_model(data: xr.Dataset) -> bool:
    """Return whether a node holds one checkpoint, so that nothing in it has a course.

    Examples
    --------
    >>> is_one_model(xr.Dataset(coords={"step": [80]}))
    True
    """
    return data.sizes.get("step") == 1 and "run" not in data.dims


def claims_of_one_model(
    name: str, data: xr.Dataset, quantities: Sequence[Quantity]
) -> list[Claim]:
    """Return how each value of a single checkpoint stands to each null of its quantity.

    A value differs where its interval lies past all of the null's draws; without an interval that
    is open, unless the value is exact. A distance to this very checkpoint has no value of its own.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"x": (("step", "layer"), [[2.0, 4.0]])}, {"layer": ["a", "b"]}
    ... )
    >>> data = data.assign(x_chance_low=("step", [1.0]), x_chance_high=("step", [2.5]))
    >>> quantity = Quantity(
    ...     "x", "norm", rows="{layer}", noise="exact", nulls={"chance": "chance"}
    ... )
    >>> [str(c.certainty) for c in claims_of_one_model("norms", data, [quantity])]
    ['open', 'sure']
    """
    if not is_one_model(data):
        return []
    told = [q for q in quantities if _has_value(data, q)]
    claims = (_of_quantity(name, data, quantity) for quantity in told)
    return list(chain.from_iterable(claims))


def _has_value(data: xr.Dataset, quantity: Quantity) -> bool:
    there = quantity.name in data and "step" in data[quantity.name].dims
    return there and bool(quantity.rows) and not quantity.relative_to


def _of_quantity(name: str, data: xr.Dataset, quantity: Quantity) -> Iterator[Claim]:
    value = _at_step(data[quantity.name], quantity)
    is_known = quantity.noise == "exact" or f"{quantity.name}_low" in data
    nulls = [null for null in quantity.nulls if _ends_of(data, quantity, null)]
    for null in nulls:
        ends = _ends_of(data, quantity, null)
        arrays = [
            value,
            *_interval(data, quantity),
            *(_at_step(end, quantity) for end in ends),
        ]
        aligned = [
            array.broadcast_like(value).transpose(*value.dims) for array in arrays
        ]
        for place, numbers in enumerate(
            zip(*(a.values.ravel() for a in aligned), strict=True)
        ):
            if np.isfinite(numbers).all():
                layer, label = _labels(value, place)
                subject = Subject(name, quantity.name, layer, label)
                claim = _beside(subject, quantity, null, *map(float, numbers))
                yield claim if is_known else _without_interval(claim)


def _without_interval(claim: Claim) -> Claim:
    """Return a claim on a value whose noise is not known."""
    reason = claim.reason or Reason.NOISE_UNKNOWN
    return replace(
        claim, certainty=Certainty.OPEN, reason=reason, low=math.nan, high=math.nan
    )


def _at_step(array: xr.DataArray, quantity: Quantity) -> xr.DataArray:
    array = array.isel(step=0, drop=True, missing_dims="ignore").astype(float)
    return array.sel(
        {d: v for d, v in quantity.at.items() if d in array.dims}, drop=True
    )


def _interval(data: xr.Dataset, quantity: Quantity) -> Iterator[xr.DataArray]:
    for end in ("low", "high"):
        name = f"{quantity.name}_{end}"
        yield _at_step(data[name if name in data else quantity.name], quantity)


def _ends_of(data: xr.Dataset, quantity: Quantity, null: str) -> list[xr.DataArray]:
    """Return both ends of a null, or twice its one value; nothing where it was not measured."""
    name = f"{quantity.name}_{null}"
    if f"{name}_low" in data:
        return [data[f"{name}_low"], data[f"{name}_high"]]
    return [data[name], data[name]] if name in data else []


def _labels(value: xr.DataArray, place: int) -> tuple[str, str]:
    """Return the layer of a value, and as a label what else tells it from others."""
    at = np.unravel_index(place, value.shape)
    named = {
        str(dim): str(value[dim].values[i]) if dim in value.coords else str(i)
        for dim, i in zip(value.dims, at, strict=True)
    }
    layer = named.pop("layer", "")
    return layer, " · ".join(named.values())


def _beside(
    subject: Subject,
    quantity: Quantity,
    null: str,
    value: float,
    low: float,
    high: float,
    null_low: float,
    null_high: float,
) -> Claim:
    differs = low > null_high or high < null_low
    return Claim(
        Kind.DIFFERS,
        subject,
        Certainty.SURE if differs else Certainty.OPEN,
        None if differs else Reason.WITHIN_CHANCE,
        last=value,
        low=low,
        high=high,
        units="" if quantity.units == "1" else quantity.units,
        beside=(Beside("null", null, null_low), Beside("null", null, null_high)),
        evidence=(f"{subject.node}/{subject.quantity}",),
    )
