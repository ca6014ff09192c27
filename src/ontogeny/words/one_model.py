"""What is said of a model that has one checkpoint: what it is, beside what chance gives; no course.

A value stands above or below a null where its interval lies past all of the null's draws.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import xarray as xr

from ..quantities import Quantity
from .formats import joined, plural


def is_one_model(data: xr.Dataset) -> bool:
    """Return whether a node holds one checkpoint, so that nothing in it has a course.

    Examples
    --------
    >>> is_one_model(xr.Dataset(coords={"step": [80]}))
    True
    """
    return data.sizes.get("step") == 1 and "run" not in data.dims


def alike(values: Sequence[float]) -> Callable[[float], str]:
    """Return how the numbers of one sentence are written: all with the same decimals.

    Examples
    --------
    >>> write = alike([6.684, 0.0312])
    >>> write(6.684), write(0.0312)
    ('6.68', '0.03')
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=1.0)
    size = math.floor(math.log10(largest)) if largest else 0
    decimals = max(min(2 - size, 6), 0)
    return lambda value: f"{value:,.{decimals}f}".replace("-", "−")


def value_statements(data: xr.Dataset, quantities: Sequence[Quantity]) -> list[str]:
    """Return a sentence on each quantity of a single checkpoint, beside its nulls.

    Examples
    --------
    >>> data = xr.Dataset({"x": (("step", "layer"), [[2.0, 4.0]])}, {"layer": ["a", "b"]})
    >>> data = data.assign(x_chance_low=("step", [1.0]), x_chance_high=("step", [1.5]))
    >>> value_statements(data, [Quantity("x", "norm", rows="{layer}", nulls={"chance": "chance"})])
    ['The norm of 2 layers is 2.00 (a) to 4.00 (b); chance: 1.00 to 1.50, 2 of 2 above.']
    """
    return [text for q in quantities if _is_said(data, q) for text in _of_quantity(data, q)]


def _is_said(data: xr.Dataset, quantity: Quantity) -> bool:
    """Return whether a quantity has a value of its own; a distance to this very step has none."""
    there = quantity.name in data and "step" in data[quantity.name].dims
    return there and bool(quantity.rows) and not quantity.relative_to


def _of_quantity(data: xr.Dataset, quantity: Quantity) -> Iterator[str]:
    value = data[quantity.name].isel(step=0, drop=True).sel(quantity.at, drop=True)
    subject = quantity.subject or f"The {quantity.title}" + " of {layer}" * ("layer" in value.dims)
    dims = [d for d in map(str, value.dims) if d != "layer" and f"{{{d}}}" in subject]
    for labels in itertools.product(*(value[dim].values for dim in dims)):
        at = dict(zip(dims, map(str, labels), strict=True))
        words = re.sub(r"\{(\w+)\}", lambda name, at=at: at.get(name[1], name[0]), subject)  # type: ignore[misc]
        if text := _sentence(data, quantity, words, at):
            yield text


def _sentence(data: xr.Dataset, quantity: Quantity, subject: str, at: dict[str, str]) -> str:
    """Say where the values lie, and how many of them lie past each null."""

    def of(name: str) -> np.ndarray | None:
        if name not in data:
            return None
        array = data[name].isel(step=0) if "step" in data[name].dims else data[name]
        place = {d: v for d, v in {**quantity.at, **at}.items() if d in array.dims}
        return np.atleast_1d(array.sel(place).values.astype(float))

    values = of(quantity.name)
    assert values is not None
    values, good = values.ravel(), np.isfinite(values.ravel())
    if not good.any():
        return ""
    low, high = (of(f"{quantity.name}_{end}") for end in ("low", "high"))
    low, high = (values if end is None else end.ravel() for end in (low, high))
    bands = {
        label: [of(f"{quantity.name}_{null}_{end}") for end in ("low", "high")]
        if f"{quantity.name}_{null}_low" in data
        else [of(f"{quantity.name}_{null}")] * 2
        for null, label in quantity.nulls.items()
    }
    ends = {
        label: (a, b)
        for label, (a, b) in bands.items()
        if a is not None and b is not None and np.isfinite(a).any()
    }
    write = alike([*values[good], *(np.nanmax(b) for _, b in ends.values())])
    units = "" if quantity.units in ("1", "") else f" {quantity.units}"
    text = _ends(data, quantity, subject, values, write) + units
    nulls = [
        _beside(label, a, b, low[good], high[good], good, write) for label, (a, b) in ends.items()
    ]
    return f"{text}{'; ' if nulls else ''}{'; '.join(nulls)}."


def _ends(
    data: xr.Dataset,
    quantity: Quantity,
    subject: str,
    values: np.ndarray,
    write: Callable[[float], str],
) -> str:
    """Return the subject with its value, or with the lowest and the highest of several layers."""
    good = np.isfinite(values)
    layers = "layer" in data[quantity.name].dims and data.sizes["layer"] == len(values)
    labels = list(map(str, data["layer"].values)) if layers else []
    if len(values) == 1:
        return f"{subject.replace('{layer}', labels[0] if labels else '')} is {write(values[0])}"
    if not labels:
        return f"{subject} is {write(values[good].min())} to {write(values[good].max())}"
    first, last = int(np.nanargmin(values)), int(np.nanargmax(values))
    subject = subject.replace("{layer}", plural(int(good.sum()), "layer"))
    ends = f"{write(values[first])} ({labels[first]}) to {write(values[last])} ({labels[last]})"
    return f"{subject} is {ends}"


def _beside(
    label: str,
    null_low: np.ndarray,
    null_high: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    good: np.ndarray,
    write: Callable[[float], str],
) -> str:
    """Say what a null gives, and how many values lie surely above or below it."""
    a, b = (end.ravel()[good] if end.size == good.size else end for end in (null_low, null_high))
    ends = dict.fromkeys(map(write, (float(np.nanmin(a)), float(np.nanmax(b)))))
    sides = {"above": int((low > b).sum()), "below": int((high < a).sum())}
    count = len(low)
    if count == 1:
        side = next((name for name, n in sides.items() if n), "not surely apart from it")
        return f"{label}: {' to '.join(ends)}, {'it is ' if side in sides else ''}{side}"
    parts = [f"{n} of {count} {name}" for name, n in sides.items() if n]
    return f"{label}: {' to '.join(ends)}, {joined(parts) or 'none surely apart from it'}"
