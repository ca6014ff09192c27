"""When rows reached half of their change, and which came first where that can be told."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import norm

from .formats import mid_sentence
from .row_words import half_words
from .rows import Row

_STRONG = ("learned", "lost", "beyond", "too few controls", "uncontrolled")
Z = 1.96  # standard errors on each side of a 95 % interval
# Most by which the upper end of an interval may exceed the lower one for a row to be named.
_NARROW = 2.0


def order_sentence(rows: Sequence[Row]) -> str:
    """Say which layer was half-way before which, within one quantity; empty if none can be told."""
    ordered = ordered_rows(rows)
    if not ordered:
        return ""
    first, last = ordered
    return (
        f"In this run, {owner(first)} had changed by half by {{step}} {half_words(first)}, sooner "
        f"than in {_layer(last)}, where it was {{step}} {half_words(last)}."
    )


def ordered_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the first and the last row of a quantity, where that is more than noise (`apart`).

    The order of distances to a reference step follows that step, and the order of different
    quantities what they measure, so that only layers of one quantity with a value of its own are
    compared. Rows within a null, and rows whose interval is wide, are not named.
    """
    quantities: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.layer and _nameable(row):
            quantities.setdefault((row.section, row.quantity), []).append(row)
    pairs = sum(math.comb(len(members), 2) for members in quantities.values())
    shown = (apart(members, pairs) for members in quantities.values())
    return next(filter(None, shown), ())


def apart(rows: Sequence[Row], pairs: int) -> tuple[Row, ...]:
    """Return the rows that were half-way first and last, if their steps differ at 5 % over `pairs`.

    Disjoint intervals are not enough: of many layers that change together, some two have them.
    """
    halves = [row for row in rows if all(map(math.isfinite, _interval(row)))]
    if len(halves) < 2:
        return ()
    first, last = (f(halves, key=lambda row: row.half_step) for f in (min, max))
    _, before, high = map(math.log1p, _interval(first))
    low, after, _ = map(math.log1p, _interval(last))
    noise = math.hypot(high - before, after - low) / Z
    shown = high < low and after - before > norm.isf(0.025 / pairs) * noise
    return (first, last) if shown else ()


def _interval(row: Row) -> tuple[float, float, float]:
    return row.half_step_low, row.half_step, row.half_step_high


def owner(row: Row) -> str:
    """Whose change it is: ``the attention entropy of layer 3``; ``layer 3`` stays on one line."""
    quantity = f"the {mid_sentence(row.quantity)}"
    return f"{quantity} of {_layer(row)}" if row.layer else quantity


def _layer(row: Row) -> str:
    return row.short_layer.replace(" ", "\N{NO-BREAK SPACE}")


def _nameable(row: Row) -> bool:
    low, _, high = _interval(row)
    finite = all(map(math.isfinite, _interval(row)))
    strong = row.state.kind in _STRONG and row.own_value and not row.within_null
    return strong and finite and high + 1 <= _NARROW * (low + 1)
