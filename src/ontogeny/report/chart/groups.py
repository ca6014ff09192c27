"""Which rows the chart shows, and in which order."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ...words.row_words import HEADINGS
from ...words.rows import Row

MAX_ROWS = 60
"""Rows that the chart shows before it thins layers."""
FEW = 3
"""So many rows that did not change stand in the chart even where another sums them up."""


@dataclass(frozen=True)
class RowGroup:
    """Rows under one heading."""

    title: str
    rows: Sequence[Row]


def folded(rows: Sequence[Row], keep: Collection[int] = ()) -> set[int]:
    """Return the places of rows that did not change and that another row sums up.

    The row ``x_overall`` of a section sums up its rows ``x``. Those at `keep` stay, and few.
    """
    sums = {(row.section, row.variable) for row in rows}
    hidden = {
        i
        for i, row in enumerate(rows)
        if (row.section, f"{row.variable}_overall") in sums
        and not any(one.changed for one in (row, *(run.row for run in row.runs)))
        and i not in keep
    }
    return hidden if len(hidden) > FEW else set()


def arrange(
    rows: Sequence[Row], limit: int = MAX_ROWS, keep: Collection[int] = ()
) -> list[RowGroup]:
    """Sort rows by half-change step into their groups; fold some, and thin layers above `limit`.

    Rows are thinned within each quantity, evenly over its layers, so that every quantity stays;
    rows at the places `keep`, which sentences name, stay too.
    """
    selection = sorted(_thin(rows, limit, keep), key=_moment)
    groups = [
        RowGroup(title, [row for row in selection if row.state == state])
        for state, title in HEADINGS.items()
    ]
    return [group for group in groups if group.rows]


def named_in(rows: Sequence[Row], sentences: Sequence[str]) -> list[Row]:
    """Return the rows whose layer a sentence names, by its path or as the row's label has it."""
    text = "\n".join(sentences)

    def named(row: Row) -> bool:
        names = {row.layer, row.label.replace(row.quantity, "").strip(" ·")} - {""}
        return any(re.search(rf"(?<![\w.]){re.escape(n)}(?!\.?\w)", text) for n in names)

    return [row for row in rows if named(row)]


def _moment(row: Row) -> float:
    """Rows stand by half-change step, undefined ones last."""
    return row.half_step if math.isfinite(row.half_step) else math.inf


def _thin(rows: Sequence[Row], limit: int, keep: Collection[int]) -> list[Row]:
    hidden = folded(rows, keep)
    open_places = [i for i in range(len(rows)) if i not in hidden]
    if len(open_places) <= limit:
        return [rows[i] for i in open_places]
    quantities: dict[tuple[str, str, str], list[int]] = {}
    for i in open_places:
        key = rows[i].section, rows[i].quantity, rows[i].state
        quantities.setdefault(key, []).append(i)
    picks: set[int] = set()
    for i, members in enumerate(sorted(quantities.values(), key=len)):
        share = max((limit - len(picks)) // (len(quantities) - i), 2)
        places = np.unique(np.linspace(0, len(members) - 1, min(share, len(members))).round())
        picks.update(members[int(place)] for place in places)
    return [rows[i] for i in sorted(picks | set(keep))]
