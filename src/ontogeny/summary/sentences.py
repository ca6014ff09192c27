"""Sentences on the rows of a node: when half of the change was done, with its interval."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from ..quantities import Quantity
from .rows import has_rows


def statements(data: xr.Dataset, quantities: Sequence[Quantity]) -> list[str]:
    """Return what the rows of every quantity show; rows that its subject names by themselves.

    Examples
    --------
    >>> from ontogeny.summary import chart_rows
    >>> loss = Quantity("x", "loss", rows="loss", subject="The loss")
    >>> data = xr.Dataset({"x": ("step", np.linspace(8, 4, 10)), "x_stderr": 0.036})
    >>> data = data.assign_coords(step=np.arange(10))
    >>> statements(data.assign(chart_rows(data, [loss])), [loss])
    ['The loss: half of the change was done by step 4.5 (4.3–4.7).']
    """
    words: list[str] = []
    for quantity in quantities:
        if quantity.name not in data:
            if not quantity.optional:
                words.append(f"No cell holds the {quantity.title} ({quantity.name!r}).")
        elif quantity.subject is not None and has_rows(data, quantity):
            for subject, at, rows in _groups(data, quantity):
                words += _of_rows(rows, subject, at)
    return words


def _groups(
    data: xr.Dataset, quantity: Quantity
) -> Iterator[tuple[str, dict[str, str], xr.Dataset]]:
    """Give the subject with labels and rows: all at once, or those of each label that it names."""
    own = data.isel(row=np.flatnonzero(data.row_quantity.values == quantity.name))
    value = data[quantity.name]
    dims = [str(d) for d in value.dims if d not in ("step", *quantity.at)]
    subject = quantity.subject or f"The {quantity.title}" + (" of {layer}" * ("layer" in dims))
    named = [d for d in dims if d != "layer" and f"{{{d}}}" in subject]
    if not named:
        yield subject, {}, own
        return
    order = sorted(dims, key=lambda dim: dim == "layer")
    labels = list(itertools.product(*(value[dim].values for dim in order)))
    for wanted in itertools.product(*(value[dim].values for dim in named)):
        at = dict(zip(named, map(str, wanted), strict=True))
        kept = [
            i
            for i, each in enumerate(labels)
            if all(str(dict(zip(order, each, strict=True))[d]) == at[d] for d in named)
        ]
        yield subject, at, own.isel(row=kept)


def _filled(text: str, at: Mapping[str, str]) -> str:
    """Return a text with labels where it names their dimensions; labels may hold braces, too."""
    return re.sub(r"\{(\w+)\}", lambda found: at.get(found[1], found[0]), text)


def _of_rows(rows: xr.Dataset, subject: str, at: Mapping[str, str]) -> list[str]:
    count = rows.sizes["row"]
    what = subject.replace(" of {layer}", "").replace(" in {layer}", "")
    what = _filled(what, {**at, "layer": "the layers"})
    unknown = int((~rows.noise_known.values).sum())
    if unknown == count:
        return [f"{what}: its noise was not measured, so that no verdict is given."]
    developed = np.flatnonzero(rows.developed.values)
    if not len(developed):
        if not np.isfinite(rows.p_value.values).any():
            return [f"{what}: fewer than 6 usable steps are too few to tell whether it changed."]
        return [f"{what}: no change above the noise floor and chance in {_rows(count)}."]
    if count == 1:
        return [_half(rows, 0, subject, at)]
    order = developed[np.argsort(rows.half_step.values[developed], kind="stable")]
    ends = [int(order[0])] if len(order) == 1 else [int(order[0]), int(order[-1])]
    words = [_half(rows, i, subject, at) for i in ends]
    return [f"{len(developed)} of {count} layers changed above their noise.", *words]


def _half(rows: xr.Dataset, i: int, subject: str, at: Mapping[str, str]) -> str:
    half, low, high = (
        float(rows[name].values[i]) for name in ("half_step", "half_step_low", "half_step_high")
    )
    text = _filled(subject, {**at, "layer": str(rows.row_layer.values[i])})
    interval = f" ({_step(low)}–{_step(high)})" if np.isfinite([low, high]).all() else ""
    sentence = f"{text}: half of the change was done by step {_step(half)}{interval}"
    settled = float(rows.settled_step.values[i])
    if np.isfinite(settled) and settled > half:
        sentence += f"; from step {_step(settled)} on it moves less than its noise"
    return sentence + "."


def _step(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def _rows(count: int) -> str:
    return "its series" if count == 1 else f"any of {count} layers"
