"""A table as it is written: numbers with as many digits as are known, in columns and lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from ...figures import Column
from ...markup import csv_text
from ...words.formats import number


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
class TableColumn:
    """A column's values over (group, rows), flattened, and its total on every line under the table.

    ``beside`` holds the arrays of its uncertainty by their names; texts have none.
    """

    column: Column
    head: Head
    values: np.ndarray
    beside: Mapping[str, np.ndarray]
    totals: Sequence[float | None]

    def rows(self, chosen: np.ndarray) -> TableColumn:
        """Return the column with some of its rows."""
        beside = {name: array[chosen] for name, array in self.beside.items()}
        return replace(self, values=self.values[chosen], beside=beside)

    @property
    def sd(self) -> np.ndarray | None:
        """Standard deviation or standard error, if there is one."""
        return self.beside.get(self.column.sd or "")

    @property
    def ends(self) -> list[np.ndarray]:
        """Lower and upper ends, if there are any."""
        return [
            self.beside[name]
            for name in self.column.interval or ()
            if name in self.beside
        ]

    @property
    def spread(self) -> np.ndarray:
        """What sets the digits: the standard deviation, else half the interval."""
        if self.sd is not None:
            return self.sd
        if self.ends:
            return (self.ends[1] - self.ends[0]) / 2
        return np.full(self.values.shape, math.nan)

    @property
    def is_filled(self) -> np.ndarray:
        """Cells with something in them."""
        if self.head.words:
            return np.asarray(self.values != "", dtype=bool)
        return ~np.isnan(self.values.astype(float))


@dataclass(frozen=True)
class Line:
    """One row: its labels, its cells, whether it starts a group, and its labels in full."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    starts: bool = False
    full: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataTable:
    """A table as every renderer writes it; ``frame`` holds its numbers as they are stored."""

    row_heads: tuple[str, ...]
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    footer: tuple[Line, ...]
    frame: pd.DataFrame = field(compare=False)

    @property
    def csv(self) -> str:
        """The numbers as they are stored, unrounded."""
        return csv_text(self.frame)

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


def decimals_of(column: TableColumn) -> int | None:
    """Return the decimals that all numbers of a column share, ``None`` where they share none.

    With an uncertainty, two digits of the median one, where the others need no more than one digit
    more or fewer; without, none for whole numbers, else four digits of the largest number, unless
    that leaves a smaller one too few.
    """
    if column.head.words or column.values.dtype.kind in "iub":
        return None
    spread = column.spread[
        column.is_filled & (column.spread > 0) & np.isfinite(column.spread)
    ]
    if spread.size:
        places = 1 - np.floor(np.log10(spread))
        shared = int(np.clip(np.ceil(np.median(places)), 0, 8))
        return shared if np.ptp(places) <= 1 else None
    sizes = np.abs(column.values[column.is_filled].astype(float))
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    if column.ends or column.sd is not None or not sizes.size:
        return None
    if np.all(sizes == np.round(sizes)):
        return 0
    places = min(max(3 - math.floor(math.log10(sizes.max())), 0), 8)
    return places if sizes.min() >= 10.0 ** -max(places - 1, 0) else None


def cell_of(column: TableColumn, i: int, decimals: int | None, shaded: bool) -> Cell:
    """Return the cell of row `i`: its words, digits, and what it is sorted by."""
    value = column.values[i]
    if not column.is_filled[i]:
        return Cell(missing=True)
    if column.head.words:
        return Cell(text=str(value), sort=str(value))
    if column.values.dtype.kind == "b":
        return Cell(text="yes" if value else "no", sort=str(int(value)))
    if np.isinf(value):
        sign = "" if value > 0 else "-"
        return Cell(text=f"{sign}∞", sort=f"{sign}Infinity", shaded=shaded)
    sort = repr(float(value))
    if column.values.dtype.kind in "iu":
        return Cell(text=f"{int(value):,}", sort=sort, shaded=shaded)
    spread = float(column.spread[i])
    text = (
        number(float(value), spread)
        if decimals is None
        else f"{float(value):,.{decimals}f}"
    )
    words = _spread_words(column, i, spread, decimals)
    return Cell(text=text, spread=words, sort=sort, shaded=shaded)


def _spread_words(
    column: TableColumn, i: int, spread: float, decimals: int | None
) -> str:
    """Return ``(0.012)`` for a standard deviation, ``[0.41, 0.46]`` for an interval."""
    if not math.isfinite(spread):
        return ""

    def written(value: float) -> str:
        is_finite = decimals is not None and math.isfinite(value)
        return f"{value:,.{decimals}f}" if is_finite else number(value, spread)

    if column.sd is not None:
        return f"({written(spread)})"
    return f"[{', '.join(written(float(end[i])) for end in column.ends)}]"


def total_of(column: TableColumn, line: int, signed: bool) -> Cell:
    """Return the cell of a line under the table, with as many digits as the column has."""
    value = column.totals[line]
    if value is None or not math.isfinite(value):
        return Cell(missing=value is not None)
    finite = column.spread[np.isfinite(column.spread)]
    spread = float(np.median(finite)) if finite.size else math.nan
    return Cell(text=("+" if signed and value > 0 else "") + number(value, spread))
