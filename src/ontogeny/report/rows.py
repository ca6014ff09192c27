"""The rows of the developmental chart: which there are, in which order, which are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from .formats import plain_text
from .labels import short_names

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
    def group(self) -> str:
        """Where it stands in the chart."""
        if self.role == "motion":
            return "motion"
        return "developed" if self.developed else "undeveloped"


@dataclass(frozen=True)
class RowGroup:
    """Rows under one heading."""

    title: str
    rows: Sequence[Row]


NUMBERS = ("half_step", "half_step_low", "half_step_high", "settled_step", "p_value")
"""Variables of rows that a row holds as numbers."""

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

    def column(name: str, missing: Any = math.nan) -> list[Any]:
        return list(data[name].values) if name in data.variables else [missing] * count

    labels, layers = (list(map(plain_text, column(name, ""))) for name in ("row", "row_layer"))
    known = [layer for layer in layers if layer]
    short = dict(zip(known, short_names(known), strict=True))
    numbers = {name: column(name) for name in NUMBERS}
    progress = data["progress"].values.astype(float)
    distinct = data["distinct"].values if "distinct" in data else np.isfinite(progress)
    developed = column("developed", False)
    return [
        Row(
            label=labels[i],
            quantity=_quantity(labels[i], layers[i], title),
            layer=layers[i],
            short_layer=short.get(layers[i], ""),
            section=section,
            role=role,
            steps=data["step"].values.astype(int),
            progress=progress[i],
            distinct=distinct[i].astype(bool),
            developed=bool(developed[i] > 0),
            **{name: float(values[i]) for name, values in numbers.items()},
        )
        for i in range(count)
    ]


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
    kept = sorted(_thin(rows, limit), key=_moment)
    groups = [RowGroup(title, [row for row in kept if row.group == key]) for key, title in GROUPS]
    return [group for group in groups if group.rows]


def _moment(row: Row) -> float:
    """Rows stand by half-change step, undefined ones last."""
    return row.half_step if math.isfinite(row.half_step) else math.inf


def _thin(rows: Sequence[Row], limit: int) -> list[Row]:
    if len(rows) <= limit:
        return list(rows)
    quantities: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        quantities.setdefault((row.section, row.quantity, row.group), []).append(row)
    kept: list[Row] = []
    for i, members in enumerate(sorted(quantities.values(), key=len)):
        share = max((limit - len(kept)) // (len(quantities) - i), 2)
        places = np.unique(np.linspace(0, len(members) - 1, min(share, len(members))).round())
        kept += [members[int(place)] for place in places]
    return kept
