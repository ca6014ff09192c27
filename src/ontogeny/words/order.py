"""Which layer of a quantity was half-way before which, where that can be told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..claims import Certainty, Kind, Reason
from ..tails import normal_limit
from .row_claims import standing
from .rows import Row

Z = 1.96  # standard errors on each side of a 95 % interval
# Most by which the upper end of an interval may exceed the lower one for a row to be named.
_NARROW = 2.0

_STRONG = (Kind.LEARNED, Kind.FORGOT, Kind.BEYOND_MOTION)
_UNTESTED = (Reason.NO_CONTROLS, Reason.FEW_CONTROLS)


def first_and_last(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Give the first and the last row of each quantity, where that is more than noise (`apart`).

    The order of distances to a reference step follows that step, and the order of different
    quantities what they measure, so that only layers of one quantity with a value of its own are
    compared. Rows within a null, and rows whose interval is wide, are not named. All rows of a page
    are given at once: the test is corrected over all pairs.
    """
    quantities: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.layer and _nameable(row):
            quantities.setdefault((row.section, row.quantity), []).append(row)
    pairs = sum(math.comb(len(members), 2) for members in quantities.values())
    for members in quantities.values():
        if ends := apart(members, pairs):
            yield ends[0], ends[1]


def apart(rows: Sequence[Row], pairs: int) -> tuple[Row, ...]:
    """Return the rows that were half-way first and last, if their steps differ at 5 % over `pairs`.

    Disjoint intervals are not enough: of many layers that change together, some two have them.
    """
    halves = [row for row in rows if all(map(math.isfinite, _interval(row)))]
    if len(halves) < 2:
        return ()
    first = min(halves, key=lambda row: row.half_step)
    last = max(halves, key=lambda row: row.half_step)
    _, before, high = map(math.log1p, _interval(first))
    low, after, _ = map(math.log1p, _interval(last))
    noise = math.hypot(high - before, after - low) / Z
    shown = high < low and after - before > normal_limit(0.025 / pairs) * noise
    return (first, last) if shown else ()


def _interval(row: Row) -> tuple[float, float, float]:
    return row.half_step_low, row.half_step, row.half_step_high


def _nameable(row: Row) -> bool:
    low, _, high = _interval(row)
    finite = all(map(math.isfinite, _interval(row)))
    if not finite or not row.changed or not row.own_value or row.within_null:
        return False
    stands = standing(row)
    is_sure = stands["kind"] in _STRONG and stands["certainty"] is Certainty.SURE
    is_untested = stands.get("reason") in _UNTESTED and not row.controlled
    return (is_sure or is_untested) and high + 1 <= _NARROW * (low + 1)
