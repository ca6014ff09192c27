"""Tables read: cells with as many digits as are known, and the better one of a pair shaded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr

from ..figures import Column, Footer, Pair
from .axes import is_step
from .cells import Cell, Head, TableColumn, cell_of, decimals_of, total
from .content import LAYER_DIMENSIONS
from .drawable import Drawable, Problem
from .fields import check_dimensions, is_text, numbers, texts, variable
from .formats import plain_text
from .labels import short_names

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


def read_table(drawable: Drawable) -> Drawable:
    """Read a table: all of it, as words and as numbers."""
    figure, sizes = drawable.figure, _sizes(drawable)
    columns = [_column(drawable, column, sizes) for column in figure.columns]
    kept = np.flatnonzero(np.any([column.known for column in columns], axis=0))
    labels, full = (_labels(drawable, sizes, short) for short in (True, False))
    footer = [_footer_values(drawable, line, columns) for line in figure.footer]
    table = DataTable(
        row_heads=tuple(map(plain_text, sizes)),
        heads=tuple(column.head for column in columns),
        lines=_lines(columns, labels, full, kept, _better(columns, figure.pairs)),
        footer=tuple(
            _footer_line(line, columns, values, len(sizes))
            for line, values in zip(figure.footer, footer, strict=True)
        ),
        csv=_csv(figure.footer, columns, footer, [full[i] for i in kept], kept, list(sizes)),
    )
    return replace(drawable, table=table, notice=table.notice)


def _sizes(drawable: Drawable) -> dict[str, int]:
    dims = [d for d in (drawable.figure.group, drawable.figure.rows) if d]
    known = drawable.node.dataset.sizes
    if missing := [d for d in dims if d not in known]:
        raise Problem(f"The result has no dimension {missing[0]!r}.")
    return {d: known[d] for d in dims}


def _flat(array: xr.DataArray, sizes: Mapping[str, int]) -> np.ndarray:
    """Return an array over the table's rows, one value for each."""
    check_dimensions(array, list(sizes), "the table's rows")
    whole = array.drop_vars(list(array.coords)).expand_dims(
        {d: n for d, n in sizes.items() if d not in array.dims}
    )
    return whole.transpose(*sizes).values.ravel()


def _column(drawable: Drawable, column: Column, sizes: Mapping[str, int]) -> TableColumn:
    name = column.value
    words = is_text(variable(drawable, name))
    array = texts(drawable, name) if words else numbers(drawable, name)
    units = drawable.units(name)
    label = column.label or drawable.label(name)
    named = [] if words else [each for each in (column.sd, *(column.interval or ())) if each]
    beside = {each: _flat(numbers(drawable, each), sizes).astype(float) for each in named}
    unit = "" if units == "1" or units in label else units
    low, high = map(beside.get, column.interval or ("", ""))
    return TableColumn(
        name=name,
        head=Head(label, unit, column.over, words),
        values=_flat(array, sizes),
        sd=beside.get(column.sd or ""),
        low=low,
        high=high,
        beside=beside,
    )


def _labels(drawable: Drawable, sizes: Mapping[str, int], short: bool) -> list[list[str]]:
    """Return the labels of every row: of its group and its own."""
    names = [_axis_labels(drawable, dimension, short) for dimension in sizes]
    return [list(labels) for labels in itertools.product(*names)]


def _axis_labels(drawable: Drawable, dimension: str, short: bool) -> list[str]:
    data = drawable.node.dataset
    values = data[dimension].values
    if short and is_step(dimension) and values.dtype.kind in "iu":
        return [f"{int(step):,}" for step in values]
    labels = [plain_text(value) for value in values.tolist()]
    return short_names(labels) if short and dimension in LAYER_DIMENSIONS else labels


def _lines(
    columns: Sequence[TableColumn],
    labels: Sequence[Sequence[str]],
    full: Sequence[Sequence[str]],
    kept: np.ndarray,
    shaded: np.ndarray,
) -> tuple[Line, ...]:
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


def _better(columns: Sequence[TableColumn], pairs: Sequence[Pair]) -> np.ndarray:
    """Return which cells are the better one of a pair, shape (columns, rows)."""
    shaded = np.zeros((len(columns), len(columns[0].values)), dtype=bool)
    place = {column.name: c for c, column in enumerate(columns)}
    for pair in pairs:
        a, b = place[pair.first], place[pair.second]
        if columns[a].head.words or columns[b].head.words:
            raise Problem(f"{pair.first!r} and {pair.second!r} must both hold numbers.")
        sign = -1.0 if pair.better == "lower" else 1.0
        first, second = (sign * columns[c].values.astype(float) for c in (a, b))
        shaded[a] |= first > second
        shaded[b] |= second > first
    return shaded


def _footer_values(
    drawable: Drawable, line: Footer, columns: Sequence[TableColumn]
) -> list[float | None]:
    """Return the number under every column, None where there is none."""
    values: list[float | None] = []
    for column in columns:
        name = line.cells.get(column.name)
        array = numbers(drawable, name) if name else None
        if array is not None and array.ndim:
            raise Problem(f"{name!r} must be one number; it has dimensions {array.dims}.")
        values.append(None if array is None else float(array))
    return values


def _footer_line(
    line: Footer, columns: Sequence[TableColumn], values: Sequence[float | None], labels: int
) -> Line:
    cells = tuple(
        Cell(
            text="" if value is None else total(value, column.typical_spread, line.signed),
            missing=value is not None and not math.isfinite(value),
        )
        for column, value in zip(columns, values, strict=True)
    )
    return Line((line.label, *([""] * (labels - 1))), cells)


def _csv(
    footer: Sequence[Footer],
    columns: Sequence[TableColumn],
    totals: Sequence[Sequence[float | None]],
    labels: Sequence[Sequence[str]],
    kept: np.ndarray,
    heads: Sequence[str],
) -> str:
    """Return all numbers unrounded: labels first, then the columns, then the lines under them."""
    arrays = [
        (name, a[kept].astype(object))
        for c in columns
        for name, a in ((c.name, c.values), *c.beside.items())
    ]
    rows = [[*own, *(array[i] for _, array in arrays)] for i, own in enumerate(labels)]
    for line, values in zip(footer, totals, strict=True):
        blank = [""] * (len(heads) - 1)
        under = [
            each
            for c, v in zip(columns, values, strict=True)
            for each in (v, *[""] * len(c.beside))
        ]
        rows.append([line.label, *blank, *under])
    names = [*heads, *(name for name, _ in arrays)]
    return pd.DataFrame(rows, columns=names, dtype=object).to_csv(index=False)
