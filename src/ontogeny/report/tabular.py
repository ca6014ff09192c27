"""Tables read: cells with as many digits as are known, and the better one of a pair shaded."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from .cells import Cell, Head, TableColumn, cell_of, decimals_of, exact, total
from .content import LAYER_DIMENSIONS
from .fields import is_text, numbers, texts, variable
from .formats import plain_text
from .labels import short_names
from .specs import FigureSpec, Problem, is_step

__all__ = ["ROWS_SHOWN", "DataTable", "Line", "read_table"]

ROWS_SHOWN = 400
"""Rows of a table in the page; its files hold all."""


@dataclass(frozen=True)
class Line:
    """One row: its labels, its cells, whether it starts a group, and its labels in full."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    starts: bool = False
    full: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataTable:
    """A table as every renderer writes it; ``csv`` holds its numbers as they are stored."""

    row_heads: tuple[str, ...]
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    footer: tuple[Line, ...]
    csv: str

    @property
    def notice(self) -> str:
        """What the page leaves out, in words."""
        if len(self.lines) <= ROWS_SHOWN:
            return ""
        return f"The first {ROWS_SHOWN} of {len(self.lines):,} rows; the files hold all."

    @property
    def spans(self) -> list[tuple[str, int]]:
        """Heads above heads, each with the number of columns under it."""
        spans: list[tuple[str, int]] = []
        for head in self.heads:
            if spans and head.over and spans[-1][0] == head.over:
                spans[-1] = (head.over, spans[-1][1] + 1)
            else:
                spans.append((head.over, 1))
        return spans if any(over for over, _ in spans) else []


def read_table(spec: FigureSpec, raw: Mapping[str, Any]) -> FigureSpec:
    """Read a table: all of it, as words and as numbers."""
    dims = [str(raw[use]) for use in ("group", "rows") if raw.get(use)]
    items = raw.get("columns") or []
    if not items or not raw.get("rows"):
        raise Problem("A table needs rows and columns.")
    sizes = _sizes(spec, dims)
    columns = [_column(spec, item, sizes) for item in items]
    labels, full = (_labels(spec, sizes, short) for short in (True, False))
    kept = np.flatnonzero(np.any([column.known for column in columns], axis=0))
    table = DataTable(
        row_heads=tuple(map(plain_text, dims)),
        heads=tuple(column.head for column in columns),
        lines=_lines(columns, labels, full, kept, raw.get("pairs") or []),
        footer=tuple(_footer(spec, item, columns, len(dims)) for item in raw.get("footer") or []),
        csv=_csv(spec, dims, columns, kept, sizes, raw.get("footer") or []),
    )
    named = [name for c in items for name in (c["value"], c.get("sd"), *(c.get("interval") or ()))]
    named += [name for item in raw.get("footer") or [] for name in item["cells"].values()]
    unique = dict.fromkeys(str(name) for name in named if name)
    parts = {name: name for name in unique}
    return replace(spec, parts=parts, options={"table": table}, notice=table.notice)


def _sizes(spec: FigureSpec, dims: Sequence[str]) -> dict[str, int]:
    missing = [d for d in dims if d not in spec.node.dataset.dims]
    if missing:
        raise Problem(f"The result has no dimension {missing[0]!r}.")
    return {d: spec.node.dataset.sizes[d] for d in dims}


def _flat(array: xr.DataArray, sizes: Mapping[str, int]) -> np.ndarray:
    """Return an array over the table's rows, one value for each."""
    if extra := set(map(str, array.dims)) - set(sizes):
        raise Problem(f"{array.name!r} has dimensions {sorted(extra)} beyond the table's rows.")
    whole = (
        array.reset_coords(drop=True)
        .drop_vars(list(array.coords))
        .expand_dims({d: n for d, n in sizes.items() if d not in array.dims})
    )
    return whole.transpose(*sizes).values.ravel()


def _column(spec: FigureSpec, item: Mapping[str, Any], sizes: Mapping[str, int]) -> TableColumn:
    name = str(item["value"])
    array = variable(spec, name)
    words = is_text(array)
    array = texts(spec, name) if words else numbers(spec, name)
    low, high = item.get("interval") or (None, None)
    units = plain_text(spec.node.dataset[name].attrs.get("units", ""))
    label = item.get("label") or spec.node.dataset[name].attrs.get("long_name") or name
    named = [str(each) for each in (item.get("sd"), low, high) if each and not words]
    beside = {each: _flat(numbers(spec, each), sizes).astype(float) for each in named}
    head = Head(
        label=plain_text(label),
        unit="" if units == "1" or units in label else units,
        over=plain_text(item.get("over") or ""),
        words=words,
    )
    sd, low, high = (beside.get(str(each)) for each in (item.get("sd"), low, high))
    return TableColumn(name, head, _flat(array, sizes), sd, low, high, beside)


def _labels(spec: FigureSpec, sizes: Mapping[str, int], short: bool = True) -> list[list[str]]:
    """Return the labels of every row: of its group and its own."""
    names = [_axis_labels(spec, dimension, size, short) for dimension, size in sizes.items()]
    if len(names) == 1:
        return [[label] for label in names[0]]
    return [[group, label] for group in names[0] for label in names[1]]


def _axis_labels(spec: FigureSpec, dimension: str, size: int, short: bool) -> list[str]:
    data = spec.node.dataset
    values = data[dimension].values if dimension in data.coords else np.arange(size)
    if short and is_step(dimension) and values.dtype.kind in "iu":
        return [f"{int(step):,}" for step in values]
    labels = [plain_text(value) for value in values.tolist()]
    return short_names(labels) if short and dimension in LAYER_DIMENSIONS else labels


def _lines(
    columns: Sequence[TableColumn],
    labels: Sequence[Sequence[str]],
    full: Sequence[Sequence[str]],
    kept: np.ndarray,
    pairs: Any,
) -> tuple[Line, ...]:
    shaded = _better(columns, pairs)
    decimals = [decimals_of(column) for column in columns]
    lines: list[Line] = []
    for i in kept.tolist():
        cells = tuple(
            cell_of(column, i, places, shaded[c, i])
            for c, (column, places) in enumerate(zip(columns, decimals, strict=True))
        )
        own = tuple(labels[i])
        starts = len(own) > 1 and (not lines or lines[-1].labels[0] != own[0])
        lines.append(Line(own, cells, starts, tuple(full[i])))
    return tuple(lines)


def _better(columns: Sequence[TableColumn], pairs: Any) -> np.ndarray:
    """Return which cells are the better one of a pair, shape (columns, rows)."""
    shaded = np.zeros((len(columns), len(columns[0].values)), dtype=bool)
    place = {column.name: c for c, column in enumerate(columns)}
    for pair in pairs:
        names = (pair["first"], pair["second"])
        if not set(names) <= set(place) or any(columns[place[n]].head.words for n in names):
            raise Problem(f"A pair must name two of the table's columns of numbers; got {names}.")
        first, second = (columns[place[name]].values.astype(float) for name in names)
        sign = -1.0 if pair.get("better") == "lower" else 1.0
        shaded[place[names[0]]] |= sign * first > sign * second
        shaded[place[names[1]]] |= sign * second > sign * first
    return shaded


def _footer(
    spec: FigureSpec, item: Mapping[str, Any], columns: Sequence[TableColumn], labels: int
) -> Line:
    cells = []
    for column in columns:
        name = item["cells"].get(column.name)
        value = _single(spec, name) if name else None
        text = "" if value is None else total(value, column.typical_spread, item.get("signed"))
        cells.append(Cell(text=text, missing=value is not None and not math.isfinite(value)))
    return Line((plain_text(item.get("label", "")), *([""] * (labels - 1))), tuple(cells))


def _single(spec: FigureSpec, name: Any) -> float:
    array = numbers(spec, name)
    if array.ndim:
        raise Problem(f"{name!r} must be one number; it has dimensions {array.dims}.")
    return float(array)


def _csv(
    spec: FigureSpec,
    dims: Sequence[str],
    columns: Sequence[TableColumn],
    kept: np.ndarray,
    sizes: Mapping[str, int],
    footer: Sequence[Mapping[str, Any]],
) -> str:
    """Return all numbers unrounded: labels first, then the columns, then the lines under them."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*dims, *(name for c in columns for name in (c.name, *c.beside))])
    labels = _labels(spec, sizes, short=False)
    for i in kept.tolist():
        arrays = [array for c in columns for array in (c.values, *c.beside.values())]
        writer.writerow([*labels[i], *(exact(array[i]) for array in arrays)])
    for item in footer:
        row = [plain_text(item.get("label", "")), *([""] * (len(dims) - 1))]
        for column in columns:
            name = item["cells"].get(column.name)
            row += [exact(_single(spec, name)) if name else "", *([""] * len(column.beside))]
        writer.writerow(row)
    return file.getvalue()
