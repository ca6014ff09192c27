"""The rows of the developmental chart: which there are, in which order, which are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from .formats import plain_text
from .labels import short_names

__all__ = ["MAX_ROWS", "Row", "RowGroup", "arrange", "judged", "read_rows"]

MAX_ROWS = 60
"""Rows that the chart shows before it thins layers."""


@dataclass(frozen=True)
class Row:
    """One row: how far one quantity in one layer has gone at every step, and how sure that is.

    ``progress`` and ``distinct`` have the shape of ``steps``; steps are in training steps, NaN
    where there is none.
    """

    label: str
    quantity: str
    layer: str
    short_layer: str
    section: str
    role: str
    steps: np.ndarray
    progress: np.ndarray
    distinct: np.ndarray
    half_step: float
    half_step_low: float
    half_step_high: float
    settled_step: float
    p_value: float
    developed: bool

    @property
    def name(self) -> str:
        """What the row is called."""
        return self.label or self.quantity

    @property
    def state(self) -> str:
        """How the chart draws it: developed or not, weight change apart."""
        known = "developed" if self.developed else "undeveloped"
        return f"motion {known}" if self.role == "motion" else known


@dataclass(frozen=True)
class RowGroup:
    """Rows under one heading."""

    key: str
    title: str
    rows: Sequence[Row]


GROUPS = (
    ("developed", "Developed, in the order of their half-change steps"),
    ("undeveloped", "Not distinguishable from chance and noise"),
    ("motion", "Weight change (says nothing about function by itself)"),
)


def read_rows(dataset: xr.Dataset, title: str, section: str, role: str) -> list[Row]:
    """Return the rows of one node, or none where it has no ``progress``."""
    if "progress" not in dataset or set(dataset["progress"].dims) != {"row", "step"}:
        return []
    data = dataset.transpose("row", "step", ...)
    count = data.sizes["row"]
    labels = _texts(data, "row", count)
    layers = _texts(data, "row_layer", count)
    known = [layer for layer in layers if layer]
    short = dict(zip(known, short_names(known), strict=True))
    numbers = {
        name: _numbers(data, name, count)
        for name in ("half_step", "half_step_low", "half_step_high", "settled_step", "p_value")
    }
    developed = _numbers(data, "developed", count) > 0
    progress = data["progress"].values.astype(float)
    distinct = np.isfinite(progress)
    if "distinct" in data:
        distinct = data["distinct"].values.astype(bool)
    steps = data["step"].values.astype(int)
    return [
        Row(
            label=labels[i],
            quantity=_quantity(labels[i], layers[i], title),
            layer=layers[i],
            short_layer=short.get(layers[i], ""),
            section=section,
            role=role,
            steps=steps,
            progress=progress[i],
            distinct=distinct[i],
            developed=bool(developed[i]),
            **{name: float(values[i]) for name, values in numbers.items()},
        )
        for i in range(count)
    ]


def _texts(data: xr.Dataset, name: str, count: int) -> list[str]:
    if name not in data.variables:
        return [""] * count
    return [plain_text(v) for v in data[name].values]


def _numbers(data: xr.Dataset, name: str, count: int) -> np.ndarray:
    if name not in data.variables:
        return np.full(count, math.nan)
    return data[name].values.astype(float)


def _quantity(label: str, layer: str, title: str) -> str:
    """Return a row's label without the layer, which has its own place in the chart."""
    if not layer:
        return label or title
    parts = [part.strip() for part in label.split("·")]
    rest = [part for part in parts if part and part != layer.strip()]
    return " · ".join(rest) or title


def judged(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that count in the verdict: all but weight change."""
    return [row for row in rows if row.role != "motion"]


def arrange(rows: Sequence[Row], limit: int = MAX_ROWS) -> list[RowGroup]:
    """Sort rows by half-change step into their groups; thin layers above `limit`.

    Rows are thinned within each quantity, evenly over its layers, so that every quantity stays.
    """
    shown = set(map(id, _thin(rows, limit)))
    groups = []
    for key, title in GROUPS:
        members = [row for row in rows if _group(row) == key and id(row) in shown]
        if members:
            groups.append(RowGroup(key, title, _ordered(members)))
    return groups


def _group(row: Row) -> str:
    if row.role == "motion":
        return "motion"
    return "developed" if row.developed else "undeveloped"


def _ordered(rows: Sequence[Row]) -> list[Row]:
    """By half-change step, undefined ones last; the order of the result breaks ties."""
    return sorted(rows, key=lambda r: r.half_step if math.isfinite(r.half_step) else math.inf)


def _thin(rows: Sequence[Row], limit: int) -> list[Row]:
    if len(rows) <= limit:
        return list(rows)
    quantities: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        quantities.setdefault((row.section, row.quantity, _group(row)), []).append(row)
    kept: list[Row] = []
    for i, members in enumerate(sorted(quantities.values(), key=len)):
        share = max((limit - len(kept)) // (len(quantities) - i), 2)
        places = np.unique(np.linspace(0, len(members) - 1, min(share, len(members))).round())
        kept += [members[int(place)] for place in places]
    return kept
