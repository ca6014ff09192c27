"""Which rows the chart shows, and in which order."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...words.formats import joined, plural, step_text, value_range
from ...words.labels import said_once
from ...words.row_words import HEADINGS
from ...words.rows import UNJUDGED, Row

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
        names = said_once([row.quantity for row in self.rows])
        names = names if len(names) <= MOST_NAMES else [*names[:4], f"{len(names) - 4} more"]
        steps = [row.half_step for row in self.rows if row.changed and row.has_half]
        words = f"{plural(len(self.rows), 'row')}: {joined(names)}"
        some = "" if len(steps) == len(self.rows) else f"{len(steps):,} of them "
        return f"{words}; {some}half-way at {value_range(steps, step_text)}" if steps else words


# States of rows that say nothing of what the model does: in the chart one line stands for them.
NO_NEWS = (*UNJUDGED, "none", "motion")


def without_news(groups: Sequence[RowGroup]) -> list[RowGroup]:
    """Fold groups of more than two rows without news; where none has any, of more than eight."""
    quiet = [all(row.state in NO_NEWS for row in group.rows) for group in groups]
    most = 8 if all(quiet) else 2
    folded = [q and len(group.rows) > most for q, group in zip(quiet, groups, strict=True)]
    some_open = not all(folded)
    return [replace(g, folded=f and some_open) for g, f in zip(groups, folded, strict=True)]


def arrange(
    rows: Sequence[Row], limit: int = MAX_ROWS, keep: Collection[int] = ()
) -> list[RowGroup]:
    """Sort rows by half-change step into their groups, and thin layers above `limit`.

    Rows are thinned within each quantity, evenly over its layers, so that every quantity stays;
    rows at the places `keep`, which sentences name, stay too.
    """
    thin = _thin(rows, limit, keep)
    # By half-change step, undefined ones last.
    selection = sorted(thin, key=lambda r: r.half_step if math.isfinite(r.half_step) else math.inf)
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


def _thin(rows: Sequence[Row], limit: int, keep: Collection[int]) -> list[Row]:
    loud = [i for i, row in enumerate(rows) if row.state not in NO_NEWS]
    quiet = set(range(len(rows))) - set(loud) if loud else set()  # one line stands for these
    open_places = loud or range(len(rows))
    if len(open_places) <= limit:
        return [rows[i] for i in sorted({*open_places, *quiet})]
    quantities: dict[tuple[str, str, str], list[int]] = {}
    for i in open_places:
        key = rows[i].section, rows[i].quantity, rows[i].state
        quantities.setdefault(key, []).append(i)
    picks: set[int] = set()
    for i, members in enumerate(sorted(quantities.values(), key=len)):
        share = max((limit - len(picks)) // (len(quantities) - i), 2)
        places = np.unique(np.linspace(0, len(members) - 1, min(share, len(members))).round())
        picks.update(members[int(place)] for place in places)
    return [rows[i] for i in sorted(picks | set(keep) | quiet)]
