"""When rows reached half of their change, and which came first where that can be told."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .formats import mid_sentence
from .row_words import half_words
from .rows import Row

_STRONG = ("learned", "beyond", "compared with too few", "uncontrolled")
_NARROW = 2.0
"""Most by which the upper end of an interval may exceed the lower one for a row to be named."""


def order_sentence(rows: Sequence[Row]) -> str:
    """Say which layer was half-way before which, within one quantity; empty if none can be told."""
    ordered = ordered_rows(rows)
    if not ordered:
        return ""
    first, last = ordered
    return (
        f"In this run, {owner(first)} had changed by half by step {half_words(first)}, sooner "
        f"than in {_layer(last)}, where it was step {half_words(last)}."
    )


def ordered_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the first and the last row of a quantity, where their intervals are disjoint.

    The order of distances to a reference step follows that step, and the order of different
    quantities what they measure, so that only layers of one quantity with a value of its own are
    compared. Rows within a null, and rows whose interval is wide, are not named.
    """
    quantities: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if _nameable(row):
            quantities.setdefault((row.section, row.quantity), []).append(row)
    for members in quantities.values():
        first, last = (f(members, key=lambda row: row.half_step) for f in (min, max))
        if first.layer and first.half_step_high < last.half_step_low:
            return first, last
    return ()


def owner(row: Row) -> str:
    """Whose change it is: ``the attention entropy of layer 3``; ``layer 3`` stays on one line."""
    quantity = f"the {mid_sentence(row.quantity)}"
    return f"{quantity} of {_layer(row)}" if row.layer else quantity


def _layer(row: Row) -> str:
    return row.short_layer.replace(" ", "\N{NO-BREAK SPACE}")


def _nameable(row: Row) -> bool:
    low, high = row.half_step_low, row.half_step_high
    finite = all(map(math.isfinite, (row.half_step, low, high)))
    strong = row.state in _STRONG and row.own_value and not row.within_null
    return strong and finite and high + 1 <= _NARROW * (low + 1)
