"""Claims of the rows of the chart: changed, beyond its motion, learned, forgot."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from ..claims import RULES, Beside, Certainty, Claim, Kind, Reason, Subject
from ..claims.since_base import moved_by
from ..dynamics.reasons import Reason as RowReason
from ..tails import t_limit
from ..trees import Nodes, found_in
from .row_reading import read_rows
from .rows import Row, counted_rows

# A change lies as controls lie where one more control would lie no farther from their mean than
# this share of it, and the run as well. Three controls that differ by half say nothing.
MARGIN = 0.2

_LEVEL = 0.05
LEAST = 0.01  # a loss that rose by .0003 of 1.505 is no "predicts worse"

# What a claim is open for, by the test that a row failed.
REASONS = {
    RowReason.UNMEASURED: Reason.NOISE_UNKNOWN,
    RowReason.FEW: Reason.FEW_CHECKPOINTS,
    RowReason.MANY: Reason.FEW_CHECKPOINTS,
    RowReason.WITHIN: Reason.WITHIN_NOISE,
    RowReason.ORDER: Reason.ORDER,
    RowReason.REFERENCE: Reason.REFERENCE_MEMORY,
    RowReason.SHORT: Reason.SHORT_MEMORY,
    RowReason.EXAMPLES: Reason.FEW_TURNED,
    RowReason.SLOW: Reason.SLOW_NOISE,
}

# P-values that are corrected over the rows that have this one.
_TESTS = {
    "p_value": "p_uncorrected",
    "p_control": "p_control",
    "p_learned": "p_learned",
    "p_lost": "p_lost",
}


def claims_of_rows(
    name: str, node: xr.Dataset, tests: Mapping[str, int]
) -> list[Claim]:
    """Return what the rows of one judged node say.

    Parameters
    ----------
    name
        Of the node.
    node
        With rows and verdicts, see `ontogeny.summary.verdicts.judged`.
    tests
        Over how many rows of the page p-values are corrected, see `rows_tested`.
    """
    if node.attrs.get("role") == "motion":
        return []
    rows = counted_rows(read_rows(node, "", "", ""))
    parts = Counter((row.variable, row.layer) for row in rows)
    figures = _figures(node)
    why = moved_by(node)
    claims: list[Claim] = []
    for row in rows:
        label = row.quantity if parts[row.variable, row.layer] > 1 else ""
        figure = figures.get(row.variable, "")
        more: dict[str, Any] = {
            "evidence": (f"{name}/{row.variable}",),
            "figure": f"{name}/{figure}" if figure else "",
        }
        subject = Subject(name, row.variable, row.layer, label)
        is_small = abs(row.change) < least_effect(node, row.variable)
        of_row = list(_of_row(row, why))
        if all(map(_has_numbers, of_row)):
            told = map(_unless_small, of_row) if is_small else of_row
            for fields in told:
                test = fields.pop("test", "p_value")
                p_value = getattr(row, test)
                of_test = {"p_value": p_value, "corrected_over": tests[test]}
                claims.append(Claim(subject=subject, **more, **of_test, **fields))
    return claims


def least_effect(node: xr.Dataset, variable: str) -> float:
    """Return by how much a loss moves at least where a heading says that it learned or forgot.

    1 % of what it gains over word frequencies at best, or where it never does, of what these cost.
    0 of what is no loss beside word frequencies.

    Examples
    --------
    >>> node = xr.Dataset({"loss_unigram": 3.0, "loss": ("step", [3.2, 1.0])})
    >>> least_effect(node, "loss")
    0.02
    """
    line = found_in(node, f"{variable}_unigram")
    if line is None or line.ndim or not np.isfinite(line):
        return 0.0
    gain = float(line) - float(node[variable].min())
    return LEAST * (gain if gain > 0 else float(line))


def _unless_small(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a claim, open where it is surely learned or forgotten, and hardly."""
    named = fields["kind"] in (Kind.LEARNED, Kind.FORGOT)
    if not named or fields["certainty"] is not Certainty.SURE:
        return fields
    return fields | _open(Reason.SMALL)


def _has_numbers(fields: Mapping[str, Any]) -> bool:
    """Return whether the numbers are there that a sure claim needs: early results lack some."""
    needed = (
        RULES[fields["kind"]].fields if fields["certainty"] is Certainty.SURE else ()
    )
    return all(math.isfinite(fields[name]) for name in needed)


def _figures(node: xr.Dataset) -> dict[str, str]:
    """Return the first figure of each variable, by its name."""
    drawn: dict[str, str] = {}
    for figure in json.loads(node.attrs.get("figures", "[]")):
        drawn.setdefault(str(figure.get("value")), str(figure.get("id")))
    return drawn


def standing(row: Row) -> dict[str, Any]:
    """Return the fields of the claim that says the most of a row.

    That is the first of these that is sure: learned, forgot, beyond its motion. Of a row that
    changed otherwise it is how its change lies to control runs, and else why the change is open.
    """
    claims = list(_of_row(row, None))
    strong = [claim for claim in claims if claim["certainty"] is Certainty.SURE]
    for kind in (Kind.LEARNED, Kind.FORGOT, Kind.BEYOND_MOTION):
        for claim in strong:
            if claim["kind"] is kind:
                return claim
    changed = claims[0]
    beyond = claims[1]
    return beyond if changed["certainty"] is Certainty.SURE else changed


def _of_row(row: Row, why: Reason | None) -> Iterator[dict[str, Any]]:
    """Give the fields of each claim on a row, that of its change first.

    `why` is what alone moved a loss since a trained start.
    """
    ends = {
        "value": row.change,
        "low": row.change - row.change_floor,
        "high": row.change + row.change_floor,
        "first": row.first_value,
        "last": row.last_value,
        "units": row.units,
    }
    half = {
        "since": row.half_step,
        "since_low": row.half_step_low,
        "since_high": row.half_step_high,
    }
    if row.changed and not (
        math.isfinite(row.first_value) and math.isfinite(row.last_value)
    ):
        for kind in (Kind.CHANGED, Kind.BEYOND_MOTION):
            yield {"kind": kind, **_open(Reason.EARLIER_VERSION)}
        return
    sure: dict[str, Any] = {"certainty": Certainty.SURE, **half}
    changed = sure if row.changed else _unchanged(row)
    yield {"kind": Kind.CHANGED, "test": _decisive(row), **ends, **changed}
    # What was learned is beyond motion by that test, though controls move as far the other way.
    of_beyond = _decisive(row) if row.beyond else "p_control"
    controls = {"beside": _controls(row), "test": of_beyond}
    beyond = sure if row.beyond else _as_controls(row)
    yield {"kind": Kind.BEYOND_MOTION, **ends, **controls, **beyond}
    if row.can_learn:
        learned = sure if row.learned else _not_learned(row, why)
        tested = {"beside": _controls(row), "test": "p_learned"}
        yield {"kind": Kind.LEARNED, **ends, **tested, **learned}
    if row.lost:
        lost = {"beside": _controls(row), "test": "p_lost"}
        yield {"kind": Kind.FORGOT, **ends, **sure, **lost}


def _controls(row: Row) -> tuple[Beside, ...]:
    return tuple(
        Beside("control", control.name, control.change, control.run_change)
        for control in row.controls
    )


def _open(reason: Reason, **more: Any) -> dict[str, Any]:
    return {"certainty": Certainty.OPEN, "reason": reason, **more}


def _unchanged(row: Row) -> dict[str, Any]:
    """Return how a row stands that is not shown to have changed."""
    return _open(REASONS[RowReason(row.reason)])


def _decisive(row: Row) -> str:
    """Return by which p-value a row changed: the strongest verdict says so by itself."""
    if row.learned:
        return "p_learned"
    if row.lost:
        return "p_lost"
    return "p_control" if row.beyond else "p_value"


def _as_controls(row: Row) -> dict[str, Any]:
    """Return how a row stands that is not shown to go beyond controls."""
    if not row.controls:
        return {"certainty": Certainty.NOT_TESTED, "reason": Reason.NO_CONTROLS}
    if not row.judgeable:
        return _unchanged(row)
    if not row.moved:
        return _open(Reason.WITHIN_NOISE)
    if not row.controlled:
        few = _has_few_controls(row)
        return _open(Reason.FEW_CONTROLS if few else Reason.NOT_COMPARABLE)
    if _within_margin(row):
        return {"certainty": Certainty.AS_CONTROLS}
    if math.isfinite(row.controls_needed):
        return _open(Reason.FEW_CONTROLS, needed=row.controls_needed)
    return _open(Reason.CONTROLS_SPREAD)


def _has_few_controls(row: Row) -> bool:
    """Return whether fewer control runs were read than any test takes."""
    return sum(math.isfinite(control.change) for control in row.nulls) < 2


def _within_margin(row: Row) -> bool:
    """Return whether a change is within `MARGIN` of its controls', which could show if it were not.

    The run's change lies that close to their mean, and so would one more control at 95 %.
    """
    pairs = [
        (c.change, c.run_change if math.isfinite(c.run_change) else row.change)
        for c in row.nulls
    ]
    known = [pair for pair in pairs if all(map(math.isfinite, pair))]
    if len(known) < 3:
        return False
    changes, own = np.array(known).T
    mean = changes.mean()
    spread = changes.std(ddof=1) * math.sqrt(1 + 1 / len(changes))
    reach = float(t_limit(_LEVEL / 2, len(changes) - 1)) * spread
    farthest = np.abs(own - mean).max() + reach
    return bool(farthest <= MARGIN * abs(mean))


def _not_learned(row: Row, why: Reason | None) -> dict[str, Any]:
    """Return how performance stands that is not shown to be learned."""
    if why is not None:
        return _open(why)
    if row.not_improved:
        return _open(Reason.NO_GAIN)
    if not math.isfinite(row.p_learned):
        if not row.controls:
            return {"certainty": Certainty.NOT_TESTED, "reason": Reason.NO_CONTROLS}
        if not row.judgeable:
            return _unchanged(row)
        if math.isfinite(row.controls_needed) or _has_few_controls(row):
            return _open(Reason.FEW_CONTROLS, needed=row.controls_needed)
        return _open(Reason.NOT_COMPARABLE)
    if math.isfinite(row.controls_needed) and row.controls_needed > len(row.nulls):
        return _open(Reason.FEW_CONTROLS, needed=row.controls_needed)
    return _open(Reason.FEW_TEXTS if row.moved else Reason.WITHIN_NOISE)


def rows_tested(nodes: Nodes) -> dict[str, int]:
    """Return over how many rows of a page each p-value is corrected, by its name."""
    tested = [
        n
        for n in nodes.values()
        if "p_uncorrected" in n and n.attrs.get("role") != "motion"
    ]
    return {
        name: sum(int(np.isfinite(n[of].values).sum()) for n in tested if of in n)
        for name, of in _TESTS.items()
    }
