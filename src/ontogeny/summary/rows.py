"""Rows of the developmental chart: every series of the quantities that make rows, judged alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..dynamics import development
from ..errors import ArgumentError
from ..quantities import Quantity
from .noise import change_floor
from .reference import reference_index


def chart_rows(data: xr.Dataset, quantities: Sequence[Quantity]) -> dict[str, Any]:
    """Judge all series of the quantities that make rows; return the chart's variables.

    Series that are distances to the reference step and others are corrected for their number
    apart, since the reference step is left out of the former.

    Returns
    -------
    dict
        Ready for ``assign``: ``row``, ``row_layer`` and ``row_quantity`` (words), ``progress`` and
        ``distinct`` over (row, step), and over rows ``half_step`` with its interval,
        ``settled_step``, ``p_value``, ``noise_known`` and ``developed``. Empty where no quantity
        makes rows.

    Examples
    --------
    >>> loss = xr.Dataset({"x": ("step", np.linspace(8, 4, 10)), "x_stderr": 0.03})
    >>> loss = loss.assign_coords(step=np.arange(10))
    >>> chart_rows(loss, [Quantity("x", "loss", rows="loss")])["developed"][1].tolist()
    [True]
    """
    with_rows = [q for q in quantities if has_rows(data, q)]
    groups = [
        _judged(data, [q for q in with_rows if q.relative_to == to])
        for to in ("", "reference", "last")
    ]
    groups = [group for group in groups if group]
    if not groups:
        return {}
    return {
        name: (dims, np.concatenate([group[name][1] for group in groups]))
        for name, (dims, _) in groups[0].items()
    }


def has_rows(data: xr.Dataset, quantity: Quantity) -> bool:
    """Return whether a quantity makes rows of the chart: has a label for them, and steps."""
    return bool(quantity.rows) and quantity.name in data and "step" in data[quantity.name].dims


def _judged(data: xr.Dataset, quantities: Sequence[Quantity]) -> dict[str, Any]:
    """Return the variables of the rows of quantities that share their reference."""
    series = [row for q in quantities for row in _series(data, q)]
    if not series:
        return {}
    labels, layers, names, values, floors, settled = zip(*series, strict=True)
    reference = reference_index(data, quantities[0].relative_to)
    steps = data.step.values
    found = development(steps, np.stack(values), np.stack(floors), reference)
    settled_step = np.array(
        [
            own if below is None else _settled_below(steps, row, below, reference)
            for own, row, below in zip(found.settled_step, values, settled, strict=True)
        ]
    )
    return {
        "row": ("row", np.array(labels, dtype=object)),
        "row_layer": ("row", np.array(layers, dtype=object)),
        "row_quantity": ("row", np.array(names, dtype=object)),
        "progress": (("row", "step"), found.progress),
        "distinct": (("row", "step"), found.distinct),
        "half_step": ("row", found.half_step),
        "half_step_low": ("row", found.half_step_low),
        "half_step_high": ("row", found.half_step_high),
        "settled_step": ("row", np.where(found.developed, settled_step, np.nan)),
        "p_value": ("row", found.p_value),
        "noise_known": ("row", found.noise_known),
        "developed": ("row", found.developed),
    }


def _series(data: xr.Dataset, quantity: Quantity) -> Iterator[tuple[Any, ...]]:
    """Give label, layer, quantity, values, floor and settling noise of each row, layers last."""
    value = data[quantity.name].sel(quantity.at, drop=True)
    floor = change_floor(data, quantity).sel(quantity.at, drop=True)
    settled = data.get(f"{quantity.name}_{quantity.settled_by}_high")
    if settled is not None:
        settled = settled.sel(quantity.at, drop=True)
    dims = sorted((str(d) for d in value.dims if d != "step"), key=lambda dim: dim == "layer")
    for labels in itertools.product(*(value[dim].values for dim in dims)):
        at = dict(zip(dims, labels, strict=True))
        below = None if settled is None else settled.sel(at).values
        try:
            label = quantity.rows.format(**at)
        except KeyError as error:
            raise ArgumentError(
                f"rows of {quantity.name!r} names {error}, which is no dimension of it; "
                f"it has {', '.join(dims) or 'none'}."
            ) from None
        layer = str(at.get("layer", ""))
        yield label, layer, quantity.name, value.sel(at).values, floor.sel(at).values, below


def _settled_below(
    steps: np.ndarray, values: np.ndarray, noise: np.ndarray, reference: int | None
) -> float:
    """Return the first step from which on the distance stays within what refitting gives."""
    usable = np.arange(len(steps)) != (-1 if reference is None else reference)
    above = usable & ~(values <= noise)
    start = int(np.flatnonzero(above)[-1]) + 1 if above.any() else 0
    return float(steps[start]) if start < len(steps) and usable[start:].any() else float("nan")
