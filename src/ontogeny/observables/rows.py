"""Rows of the developmental chart: from series over steps to verdicts in the result's schema.

Every observable's summary goes through here, so that all rows are judged by the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..dynamics import development

__all__ = [
    "MEASURABLE",
    "development_rows",
    "paired_floor",
    "paired_stderr",
    "reference_index",
    "statement",
]

MEASURABLE = 1e-5
"""Smallest relative distance that float32 activations can show; rounding stays well below it."""


def paired_stderr(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the standard error of the weighted mean over the last axis (texts).

    Examples
    --------
    >>> round(float(paired_stderr(np.array([1.0, 3.0]), np.array([1, 1]))), 3)
    1.0
    """
    counted = np.asarray(weights) > 0  # a text without such tokens has no value
    values, weights = values[..., counted], np.asarray(weights, dtype=np.float64)[counted]
    count, total = len(weights), weights.sum()
    if count < 2:
        return np.full(np.shape(values)[:-1], np.inf)
    mean = (values * weights).sum(-1, keepdims=True) / total
    spread = (((values - mean) * weights) ** 2).sum(-1)
    return np.sqrt(spread * count / (count - 1)) / total


def paired_floor(of_text: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return 1.96 standard errors of the change since the first step, paired over texts.

    Parameters
    ----------
    of_text
        (steps, texts); a step that is missing is NaN throughout.
    weights
        (texts,), such as tokens.

    Returns
    -------
    numpy.ndarray
        (steps,); 0 at the first step that is there, NaN-free.

    Examples
    --------
    >>> values = np.array([[1.0, 3.0], [2.0, 4.0], [1.0, 4.0]])
    >>> paired_floor(values, np.ones(2)).round(2)
    array([0.  , 0.  , 0.98])
    """
    of_text, weights = of_text[:, np.asarray(weights) > 0], weights[np.asarray(weights) > 0]
    there = ~np.isnan(of_text).any(-1)
    if not there.any():
        return np.zeros(len(of_text))
    first = of_text[np.argmax(there)]
    floor = 1.96 * paired_stderr(of_text - first, weights)
    return np.where(there, np.nan_to_num(floor, nan=0.0, posinf=np.finfo(float).max), 0.0)


def reference_index(data: xr.Dataset) -> int | None:
    """Return the position of the reference step along ``step``, or None where it is not there."""
    step = data.attrs.get("reference_step")
    found = np.flatnonzero(data.step.values == step)
    return int(found[0]) if len(found) else None


def development_rows(
    labels: Sequence[str],
    layers: Sequence[str],
    steps: np.ndarray,
    values: np.ndarray,
    *,
    floor: np.ndarray | float,
    reference_index: int | None = None,
    settled: np.ndarray | None = None,
    scale: np.ndarray | float | None = None,
) -> dict[str, Any]:
    """Judge series (rows, steps) and return the chart's variables, ready for ``assign``.

    Parameters
    ----------
    labels, layers
        Label and module path of each row.
    steps, values, floor, reference_index, scale
        As in `ontogeny.dynamics.development`.
    settled
        For distances to the reference step: what refitting alone gives, (rows, steps). The row
        has settled from the first step on at which the distance stays below it.

    Examples
    --------
    >>> steps = np.arange(10)
    >>> rows = development_rows(["loss"], [""], steps, np.linspace(8, 4, 10)[None], floor=0.1)
    >>> rows["developed"][1].tolist()
    [True]
    """
    found = development(steps, values, floor, reference_index, scale=scale)
    settled_step = found.settled_step
    if settled is not None:
        settled_step = _settled_below(steps, values, settled, reference_index)
    return {
        "row": ("row", np.array(labels, dtype=object)),
        "row_layer": ("row", np.array(layers, dtype=object)),
        "progress": (("row", "step"), found.progress),
        "distinct": (("row", "step"), found.distinct),
        "half_step": ("row", found.half_step),
        "half_step_low": ("row", found.half_step_low),
        "half_step_high": ("row", found.half_step_high),
        "settled_step": ("row", np.where(found.developed, settled_step, np.nan)),
        "p_value": ("row", found.p_value),
        "developed": ("row", found.developed),
    }


def _settled_below(
    steps: np.ndarray, values: np.ndarray, noise: np.ndarray, reference: int | None
) -> np.ndarray:
    usable = np.arange(len(steps)) != (-1 if reference is None else reference)
    above = usable & ~(values <= noise)
    result = np.full(len(values), np.nan)
    for i, row in enumerate(above):
        start = int(np.flatnonzero(row)[-1]) + 1 if row.any() else 0
        if start < len(steps) and usable[start:].any():
            result[i] = float(steps[start])
    return result


def statement(data: xr.Dataset, subject: str) -> list[str]:
    """Return sentences on a node's rows: when half of the change was done, with its interval.

    ``{layer}`` in `subject` is replaced by the row's layer.

    Examples
    --------
    >>> steps = np.arange(10)
    >>> rows = development_rows(["loss"], [""], steps, np.linspace(8, 4, 10)[None], floor=0.1)
    >>> statement(xr.Dataset(coords={"step": steps}).assign(rows), "The loss")
    ['The loss: half of the change was done by step 4.5 (4.3-4.7).']
    """
    developed = np.flatnonzero(data.developed.values)
    count = data.sizes["row"]
    if not len(developed):
        what = subject.replace(" of {layer}", "").replace(" in {layer}", "")
        if not np.isfinite(data.p_value.values).any():
            return [f"{what}: fewer than 6 usable steps are too few to tell whether it changed."]
        return [f"{what}: no change above the noise floor and chance in {_rows(count)}."]
    if count == 1:
        return [_half(data, 0, subject)]
    order = developed[np.argsort(data.half_step.values[developed], kind="stable")]
    ends = [int(order[0])] if len(order) == 1 else [int(order[0]), int(order[-1])]
    words = [_half(data, i, subject) for i in ends]
    return [f"{len(developed)} of {count} layers changed above their noise.", *words]


def _half(data: xr.Dataset, i: int, subject: str) -> str:
    layer = str(data.row_layer.values[i])
    half, low, high = (
        float(data[name].values[i]) for name in ("half_step", "half_step_low", "half_step_high")
    )
    text = subject.format(layer=layer)
    interval = f" ({_step(low)}-{_step(high)})" if np.isfinite([low, high]).all() else ""
    sentence = f"{text}: half of the change was done by step {_step(half)}{interval}"
    settled = float(data.settled_step.values[i])
    if np.isfinite(settled) and settled > half:
        sentence += f"; from step {_step(settled)} on it moves less than its noise"
    return sentence + "."


def _step(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def _rows(count: int) -> str:
    return "its series" if count == 1 else f"any of {count} layers"
