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

from .content import LAYER_DIMENSIONS
from .fields import is_text, numbers, texts, variable
from .formats import number, plain_text
from .labels import short_names
from .specs import FigureSpec, Problem, is_step

__all__ = ["ROWS_SHOWN", "Cell", "DataTable", "Head", "Line", "read_table"]

ROWS_SHOWN = 400
"""Rows of a table in the page; its files hold all."""


@dataclass(frozen=True)
class Cell:
    """What stands in one cell: its words, what it is sorted by, and the number as it is stored."""

    text: str = ""
    spread: str = ""
    sort: str = ""
    missing: bool = False
    shaded: bool = False


@dataclass(frozen=True)
class Head:
    """Head of a column; ``over`` is shared with neighbours, ``words`` are aligned to the left."""

    label: str
    unit: str = ""
    over: str = ""
    words: bool = False


@dataclass(frozen=True)
class Line:
    """One row: its labels, its cells, and whether it starts a group."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    starts: bool = False


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


@dataclass(frozen=True)
class _Column:
    """A column's arrays over (group, rows), flattened; texts have no uncertainty.

    ``beside`` holds those of the uncertainty under the names of their variables.
    """

    name: str
    head: Head
    values: np.ndarray
    sd: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    beside: Mapping[str, np.ndarray]

    @property
    def spread(self) -> np.ndarray:
        """What sets the digits: the standard deviation, else half the interval."""
        if self.sd is not None:
            return self.sd
        if self.low is not None and self.high is not None:
            return (self.high - self.low) / 2
        return np.full(self.values.shape, math.nan)

    @property
    def typical_spread(self) -> float:
        """What sets the digits of the lines under the column; NaN if unknown."""
        known = self.spread[np.isfinite(self.spread)]
        return float(np.median(known)) if known.size else math.nan

    @property
    def known(self) -> np.ndarray:
        """Cells with something in them."""
        if self.head.words:
            return np.asarray(self.values != "", dtype=bool)
        return np.isfinite(self.values.astype(float))


def read_table(spec: FigureSpec, raw: Mapping[str, Any]) -> FigureSpec:
    """Read a table: all of it, as words and as numbers."""
    dims = [str(raw[use]) for use in ("group", "rows") if raw.get(use)]
    items = raw.get("columns") or []
    if not items or not raw.get("rows"):
        raise Problem("A table needs rows and columns.")
    sizes = _sizes(spec, dims)
    columns = [_column(spec, item, sizes) for item in items]
    labels = _labels(spec, sizes)
    kept = np.flatnonzero(np.any([column.known for column in columns], axis=0))
    table = DataTable(
        row_heads=tuple(map(plain_text, dims)),
        heads=tuple(column.head for column in columns),
        lines=_lines(columns, labels, kept, raw.get("pairs") or []),
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


def _column(spec: FigureSpec, item: Mapping[str, Any], sizes: Mapping[str, int]) -> _Column:
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
        unit="" if units == "1" else units,
        over=plain_text(item.get("over") or ""),
        words=words,
    )
    sd, low, high = (beside.get(str(each)) for each in (item.get("sd"), low, high))
    return _Column(name, head, _flat(array, sizes), sd, low, high, beside)


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
    columns: Sequence[_Column], labels: Sequence[Sequence[str]], kept: np.ndarray, pairs: Any
) -> tuple[Line, ...]:
    shaded = _better(columns, pairs)
    decimals = [_decimals(column) for column in columns]
    lines: list[Line] = []
    for i in kept.tolist():
        cells = tuple(
            _cell(column, i, places, shaded[c, i])
            for c, (column, places) in enumerate(zip(columns, decimals, strict=True))
        )
        own = tuple(labels[i])
        starts = len(own) > 1 and (not lines or lines[-1].labels[0] != own[0])
        lines.append(Line(own, cells, starts))
    return tuple(lines)


def _better(columns: Sequence[_Column], pairs: Any) -> np.ndarray:
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


def _decimals(column: _Column) -> int | None:
    """Return the decimals that all numbers of a column share, where nothing else sets them.

    None for whole numbers, else four digits of the largest number; ``None`` stands for numbers
    of which that would leave a smaller one too few.
    """
    if column.head.words or column.values.dtype.kind in "iub" or column.spread is column.sd:
        return None
    known = np.abs(column.values[column.known].astype(float))
    known = known[known > 0]
    if column.low is not None or not known.size:
        return None
    if np.all(known == np.round(known)):
        return 0
    places = min(max(3 - math.floor(math.log10(known.max())), 0), 8)
    return places if known.min() >= 10.0 ** -max(places - 1, 0) else None


def _cell(column: _Column, i: int, decimals: int | None, shaded: bool) -> Cell:
    value = column.values[i]
    if not column.known[i]:
        return Cell(missing=True)
    if column.head.words:
        return Cell(text=str(value), sort=str(value))
    if column.values.dtype.kind == "b":
        return Cell(text="yes" if value else "no", sort=str(int(value)))
    sort = repr(float(value))
    if column.values.dtype.kind in "iu":
        return Cell(text=f"{int(value):,}", sort=sort, shaded=shaded)
    spread = float(column.spread[i])
    text = number(float(value), spread) if decimals is None else f"{float(value):,.{decimals}f}"
    return Cell(text=text, spread=_spread_words(column, i, spread), sort=sort, shaded=shaded)


def _spread_words(column: _Column, i: int, spread: float) -> str:
    """Return ``(0.012)`` for a standard deviation, ``[0.41, 0.46]`` for an interval."""
    if column.sd is not None:
        return f"({number(spread, spread)})" if math.isfinite(spread) else ""
    if column.low is None or column.high is None or not math.isfinite(spread):
        return ""
    return f"[{number(column.low[i], spread)}, {number(column.high[i], spread)}]"


def _footer(
    spec: FigureSpec, item: Mapping[str, Any], columns: Sequence[_Column], labels: int
) -> Line:
    cells = []
    for column in columns:
        name = item["cells"].get(column.name)
        value = _single(spec, name) if name else None
        text = "" if value is None else _total(value, column.typical_spread, item.get("signed"))
        cells.append(Cell(text=text, missing=value is not None and not math.isfinite(value)))
    return Line((plain_text(item.get("label", "")), *([""] * (labels - 1))), tuple(cells))


def _single(spec: FigureSpec, name: Any) -> float:
    array = numbers(spec, name)
    if array.ndim:
        raise Problem(f"{name!r} must be one number; it has dimensions {array.dims}.")
    return float(array)


def _total(value: float, spread: float, signed: Any) -> str:
    """Return a number under a column with that column's digits, empty for NaN."""
    if not math.isfinite(value):
        return ""
    return ("+" if signed and value > 0 else "") + number(value, spread)


def _csv(
    spec: FigureSpec,
    dims: Sequence[str],
    columns: Sequence[_Column],
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
        writer.writerow([*labels[i], *(_exact(array[i]) for array in arrays)])
    for item in footer:
        row = [plain_text(item.get("label", "")), *([""] * (len(dims) - 1))]
        for column in columns:
            name = item["cells"].get(column.name)
            row += [_exact(_single(spec, name)) if name else "", *([""] * len(column.beside))]
        writer.writerow(row)
    return file.getvalue()


def _exact(value: Any) -> str:
    """Return a cell as the shortest text that reads back as it, or nothing for NaN."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    return repr(float(value)) if math.isfinite(value) else ""
