"""Cells of a table: numbers with as many digits as are known, and the columns they stand in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import number

__all__ = ["Cell", "Head", "TableColumn", "cell_of", "decimals_of", "exact", "total"]


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
        return ~np.isnan(self.values.astype(float))


def decimals_of(column: TableColumn) -> int | None:
    """Return the decimals that all numbers of a column share, where nothing else sets them.

    None for whole numbers, else four digits of the largest number; ``None`` stands for numbers
    of which that would leave a smaller one too few.
    """
    if column.head.words or column.values.dtype.kind in "iub" or column.spread is column.sd:
        return None
    known = np.abs(column.values[column.known].astype(float))
    known = known[(known > 0) & np.isfinite(known)]
    if column.low is not None or not known.size:
        return None
    if np.all(known == np.round(known)):
        return 0
    places = min(max(3 - math.floor(math.log10(known.max())), 0), 8)
    return places if known.min() >= 10.0 ** -max(places - 1, 0) else None


def cell_of(column: TableColumn, i: int, decimals: int | None, shaded: bool) -> Cell:
    """Return the cell of row `i`: its words, digits, and what it is sorted by."""
    value = column.values[i]
    if not column.known[i]:
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
    text = number(float(value), spread) if decimals is None else f"{float(value):,.{decimals}f}"
    return Cell(text=text, spread=_spread_words(column, i, spread), sort=sort, shaded=shaded)


def _spread_words(column: TableColumn, i: int, spread: float) -> str:
    """Return ``(0.012)`` for a standard deviation, ``[0.41, 0.46]`` for an interval."""
    if column.sd is not None:
        return f"({number(spread, spread)})" if math.isfinite(spread) else ""
    if column.low is None or column.high is None or not math.isfinite(spread):
        return ""
    return f"[{number(column.low[i], spread)}, {number(column.high[i], spread)}]"


def total(value: float, spread: float, signed: Any) -> str:
    """Return a number under a column with that column's digits, empty for NaN."""
    if not math.isfinite(value):
        return ""
    return ("+" if signed and value > 0 else "") + number(value, spread)


def exact(value: Any) -> str:
    """Return a cell as the shortest text that reads back as it; nothing for NaN."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    return "" if math.isnan(value) else repr(float(value))
