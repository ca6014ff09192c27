"""What is said of a model that has one checkpoint: what it is, beside what chance gives; no course.

A value stands above or below a null where its interval lies past all of the null's draws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import xarray as xr

from ..quantities import Quantity
from .formats import plural, with_labels


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
    ['The norm of 2 layers is 2.00 (a) to 4.00 (b). Of 2 layers, 2 are higher than chance \
(1.00 to 1.50).']
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
        words = with_labels(subject, at)
        if text := _sentence(data, quantity, words, at):
            yield text


def _sentence(data: xr.Dataset, quantity: Quantity, subject: str, at: dict[str, str]) -> str:
    """Say where the values lie, and how many of them lie past each null."""
    name = quantity.name

    def of(*names: str) -> xr.DataArray:
        array = next(data[each] for each in names if each in data)
        array = array.isel(step=0, drop=True, missing_dims="ignore").astype(float)
        place = {d: v for d, v in {**quantity.at, **at}.items() if d in array.dims}
        return array.sel(place, drop=True)

    def flat(*names: str) -> np.ndarray:
        return of(*names).broadcast_like(value).transpose(*value.dims).values.ravel()

    value = of(name)
    values, low, high = flat(name), flat(f"{name}_low", name), flat(f"{name}_high", name)
    if not np.isfinite(values).any():
        return ""
    pairs = {
        label: [flat(f"{name}_{null}_{end}", f"{name}_{null}") for end in ("low", "high")]
        for null, label in quantity.nulls.items()
        if f"{name}_{null}_low" in data or f"{name}_{null}" in data
    }
    nulls = [(label, a, b) for label, (a, b) in pairs.items() if np.isfinite(a).any()]
    digits = alike([*values, *(np.nanmax(b) for _, _, b in nulls)])
    units = "" if quantity.units in ("1", "") else f" {quantity.units}"
    labels = list(map(str, value["layer"].values)) if value.dims == ("layer",) else []
    count = int(np.isfinite(values).sum())
    noun = str(value.dims[0]) if value.ndim == 1 else "value"

    def between(least: float, most: float) -> str:
        return " to ".join(dict.fromkeys(map(digits, (least, most)))) + units

    words = between(np.nanmin(values), np.nanmax(values))
    if labels and " to " in words:
        first, last = (f"({labels[i]})" for i in (np.nanargmin(values), np.nanargmax(values)))
        words = f"{words.replace(' to ', f' {first} to ')} {last}"
    n_layers = value.sizes.get("layer", 1) if value.ndim > 1 else count
    layers = labels[0] if len(labels) == 1 else plural(n_layers, "layer")
    subject = subject.replace("{layer}", layers)
    texts = [f"{subject} is {words}."]
    for label, a, b in nulls:
        there = " there" * (np.unique(a[np.isfinite(a)]).size > 1)  # each beside its own layer
        null = f"{label}{there} ({between(np.nanmin(a), np.nanmax(b))})"
        sides = {"higher": int((low > b).sum()), "lower": int((high < a).sum())}
        # Without an interval only the values themselves can be compared: one like the draws lies
        # above three of them in one case of four.
        sides = {side: n for side, n in sides.items() if n}
        texts.append(_beside(null, sides, count, noun, "surely " * (f"{name}_low" in data)))
    return " ".join(texts)


def _beside(null: str, sides: dict[str, int], count: int, noun: str, surely: str) -> str:
    """Say how many of `count` values lie (surely) on either side of a null."""
    if not sides:
        none = f"None of {plural(count, noun)} is" if count > 1 else "It is not"
        return f"{none} {surely}higher or lower than {null}."
    (side, n), *other = sides.items()
    subject = f"Of {plural(count, noun)}, {n}" if count > 1 else "It"
    more = "".join(f", and {n} {surely}{side}" for side, n in other)
    return f"{subject} {'is' if n == 1 else 'are'} {surely}{side} than {null}{more}."
