"""Which rows the chart shows, and in which order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ...words.catalogue.captions import CAPTIONS
from ...words.formats import joined, plural, step_text, value_range
from ...words.labels import said_once
from ...words.row_words import heading_of, is_news, place_of
from ...words.rows import Row

MAX_ROWS = 32  # rows that the chart shows before it thins layers
MOST_NAMES = 5  # quantities that a line for folded rows names; a list of nine was cut in mid-word


@dataclass(frozen=True)
class RowGroup:
    """Rows under one heading."""

    title: str
    rows: Sequence[Row]
    folded: bool = False

    @property
    def summary(self) -> str:
        """What stands instead of the rows: how many, of what, and when half-way."""
        names = said_once([(row.quantity, row.kind) for row in self.rows])
        names = (
            names
            if len(names) <= MOST_NAMES
            else [*names[:4], f"{len(names) - 4} more"]
        )
        steps = [row.half_step for row in self.rows if row.changed and row.has_half]
        words = f"{plural(len(self.rows), 'measure')}: {joined(names)}"
        if not steps:
            return words
        some = CAPTIONS["some"].format(count=f"{len(steps):,}")
        some = "" if len(steps) == len(self.rows) else some
        when = value_range(steps, step_text)
        return CAPTIONS["half-way"].format(rows=words, some=some, steps=when)


def arrange(
    rows: Sequence[Row], limit: int = MAX_ROWS, keep: Collection[int] = ()
) -> list[RowGroup]:
    """Sort rows by half-change step into their groups, fold those without news, and thin the rest.

    A folded group has all its rows: one that was thinned before said "41 rows" of 75. Where no row
    has news, weight change alone is folded, and half as many of the others are shown. Rows are
    thinned evenly within each quantity; rows at the places `keep`, which sentences name, stay.
    """
    headings = [heading_of(row) for row in rows]
    counts = Counter(headings)
    has_news = any(map(is_news, rows))
    folded: set[str] = set()
    for row, heading in zip(rows, headings, strict=True):
        is_quiet = (
            not is_news(row) if has_news else not row.is_counted and len(counts) > 1
        )
        if is_quiet and counts[heading] > 2:
            folded.add(heading)
    places = [i for i, heading in enumerate(headings) if heading not in folded]
    picks = _thin(rows, places, limit if has_news else limit // 2) | set(keep)
    shown = [row for i, row in enumerate(rows) if i in picks or headings[i] in folded]
    # By half-change step, undefined ones last.
    shown.sort(
        key=lambda row: row.half_step if math.isfinite(row.half_step) else math.inf
    )
    alike: dict[str, list[Row]] = {}
    for row in shown:
        alike.setdefault(heading_of(row), []).append(row)
    groups = sorted(alike.items(), key=lambda group: place_of(group[1][0]))
    return [RowGroup(title, members, title in folded) for title, members in groups]


def _thin(rows: Sequence[Row], places: Sequence[int], limit: int) -> set[int]:
    """Return at most about `limit` of the places: of each quantity some, or of each section."""
    if len(places) <= limit:
        return set(places)
    for of_quantity in (True, False):
        alike: dict[tuple[str, ...], list[int]] = {}
        for i in places:
            quantity = rows[i].quantity if of_quantity else ""
            alike.setdefault(
                (rows[i].section, quantity, heading_of(rows[i])), []
            ).append(i)
        # Else of 35 quantities more rows would stay than the chart has.
        if 2 * len(alike) <= limit:
            break
    picks: set[int] = set()
    for i, members in enumerate(sorted(alike.values(), key=len)):
        share = max((limit - len(picks)) // (len(alike) - i), 2)
        at = np.unique(
            np.linspace(0, len(members) - 1, min(share, len(members))).round()
        )
        picks.update(members[int(place)] for place in at)
    return picks
