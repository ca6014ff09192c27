"""What a row of the chart says, in words and as a record: the same in all its places."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..claims import Certainty, Kind, Reason
from ..dynamics.reasons import Reason as RowReason
from .catalogue.sentences import OF_RUNS, REASONS, STANDINGS, UNCOUNTED
from .formats import (
    interval_text,
    p_words,
    plural,
    sentence_start,
    step_text,
    values_words,
    with_interval,
)
from .row_claims import standing
from .row_variables import NUMBERS
from .rows import ControlRow, Row

# Which test said that it changed, where the quantity brings one.
BY_EXAMPLES = " on these examples (exact test)"


@dataclass(frozen=True)
class Standing:
    """How a row stands: what is said of it, how surely, and why it is open.

    ``where`` is in how many of several runs it is so: ``"every"`` or ``"some"``; empty of one run.
    """

    kind: Kind
    certainty: Certainty
    reason: Reason | None = None
    where: str = ""

    @property
    def heading(self) -> str:
        """What stands over the rows that stand so."""
        return sentence_start(self.words())

    def words(self, how: str = "") -> str:
        """Return the same of a row within a sentence; `how` is by which test it changed."""
        words = STANDINGS[self.kind, self.certainty].format(how=how)
        return OF_RUNS[self.where].format(words) if self.where else words

    @property
    def why(self) -> str:
        """Why it is open, empty where it is not."""
        if self.reason is None or self.where or self.certainty is Certainty.NOT_TESTED:
            return ""
        return REASONS[self.reason].format(word="word", needed="")


# How rows stand, in the order of the chart.
_ORDER = list(STANDINGS)


def standing_of(row: Row) -> Standing | None:
    """Return how a row stands; None of what does not count, as it does not say what a model does."""
    if not row.is_counted:
        return None
    if row.runs:
        return _standing_of_runs(row)
    claim = standing(row)
    return Standing(claim["kind"], claim["certainty"], claim.get("reason"))


def _standing_of_runs(row: Row) -> Standing:
    """Return how a row stands in all runs, or in those that show it, by the weakest of them."""
    firm = [run.row for run in row.runs if run.firm]
    stands = [standing_of(one) for one in firm or [run.row for run in row.runs]]
    known = [one for one in stands if one is not None]
    weakest = max(known, key=lambda one: _ORDER.index((one.kind, one.certainty)))
    if weakest.kind is Kind.CHANGED:
        return weakest
    if not firm and len({one.certainty for one in known}) > 1:
        return Standing(Kind.BEYOND_MOTION, Certainty.OPEN, where="every")
    some = bool(firm) and len(firm) < len(row.runs)
    return Standing(weakest.kind, weakest.certainty, where="some" if some else "every")


def heading_of(row: Row) -> str:
    """Return the heading of the rows that stand like one."""
    stands = standing_of(row)
    return sentence_start(_uncounted(row)) if stands is None else stands.heading


def _uncounted(row: Row) -> str:
    return UNCOUNTED["last" if row.to_last else "motion"]


def place_of(row: Row) -> tuple[int, str]:
    """Return by what rows that stand alike are ordered in the chart."""
    stands = standing_of(row)
    if stands is None:
        return len(_ORDER), _uncounted(row)
    return _ORDER.index((stands.kind, stands.certainty)), stands.where


def is_news(row: Row) -> bool:
    """Return whether a row says something of what the model does: not if it is open."""
    stands = standing_of(row)
    return stands is not None and stands.kind is not Kind.CHANGED


# Columns of a row in files, behind those of each step.
_VERDICTS = ("noise_known", "reason", "judgeable", "changed", "beyond", "learned")
RECORD = (
    "verdict",
    "direction",
    "units",
    *NUMBERS,
    *_VERDICTS,
    "controls",
    "control_first",
    "control_last",
    "control_half_step",
)


def state_words(row: Row) -> str:
    """Say how a row stands, and which test decided; of one that is open why."""
    stands = standing_of(row)
    if stands is None:
        return _uncounted(row)
    words = stands.words(BY_EXAMPLES if row.own_change_test and not row.beyond else "")
    return ": ".join(filter(None, [words, stands.why]))


def direction(row: Row) -> str:
    """Return ``"falls"``, ``"rises"`` or ``"returns to its first value"``; empty if unknown."""
    if not math.isfinite(row.change):
        return ""
    if row.change == 0:
        return "returns to its first value"
    return "rises" if row.change > 0 else "falls"


def journey(row: Row) -> str:
    """Say from what to what a row goes: ``8.34 → 5.02 nats, falls``.

    Of a row that is not distinguishable from chance and noise no direction is said.
    """
    ends = values_words(row.first_value, row.last_value, " → ")
    words = " ".join(filter(None, [ends, row.units])) if ends else ""
    return f"{words}, {direction(row)}" if words and row.changed else words


def half_words(row: Row) -> str:
    """Return the half-change step with its interval, empty where there is none.

    Two checkpoints alone tell none.
    """
    ends = (row.half_step, row.half_step_low, row.half_step_high)
    return with_interval(*ends) if row.changed and row.has_half else ""


_TWO_STEPS = "not known: read at two usable {checkpoint}s"
_APART = "went another way, or far less"


def control_half_words(row: Row) -> str:
    """Return the range of the controls' half-change steps, ``40–90``, or why none is known.

    Empty where no control was read or none moved.
    """
    steps = control_half_steps(row)
    if not steps:
        dated = (math.isfinite(run.half_step) for run in row.controls)
        moved = (abs(run.change) > 0 for run in row.controls)
        undated = any(m and not d for m, d in zip(moved, dated, strict=True))
        return _TWO_STEPS if undated else ""
    return interval_text(min(steps), max(steps)) or step_text(steps[0])


def controls_along(row: Row) -> list[ControlRow]:
    """Return the controls that went in the run's direction, and not far less: their steps compare.

    Losses of random motion rise where that of the run falls; both have a half-change step.
    """
    of_run = [
        c.run_change if math.isfinite(c.run_change) else row.change
        for c in row.controls
    ]
    both = zip(row.controls, of_run, strict=True)
    return [c for c, change in both if c.change * change >= COMPARABLE * change**2 > 0]


def control_half_steps(row: Row) -> list[float]:
    """Return the half-change steps of the controls whose steps compare with the run's."""
    return [
        run.half_step for run in controls_along(row) if math.isfinite(run.half_step)
    ]


def half_facts(row: Row) -> list[str]:
    """Say when a row, or each of its runs, was half-way, and when each control run was."""
    if not row.runs:
        return [_half_fact(row), *_half_facts_of_controls(row)]
    runs = [
        f"{run.name}: {_half_fact(run.row)}, {state_words(run.row)}" for run in row.runs
    ]
    return [*runs, *_half_facts_of_controls(row)]


def _half_fact(row: Row) -> str:
    if not math.isfinite(row.half_step):
        return "no half-change {point}"
    ends = with_interval(row.half_step, row.half_step_low, row.half_step_high)
    return f"half-change {{step}} {ends}"


def _half_facts_of_controls(row: Row) -> list[str]:
    """Say when each control run was half-way; of many their range."""
    along = controls_along(row)
    steps = control_half_steps(row)
    missing = [_why_none(run, along) for run in row.controls]
    if len(row.controls) <= MOST_CONTROLS:
        return [
            f"{run.name}: {why or step_text(run.half_step)}"
            for run, why in zip(row.controls, missing, strict=True)
        ]
    of_all = (
        [f"{plural(len(steps), 'control run')}: {control_half_words(row)}"]
        if steps
        else []
    )
    without = Counter(filter(None, missing))
    return [
        *of_all,
        *(f"{plural(n, 'control run')}: {why}" for why, n in without.items()),
    ]


def _why_none(run: ControlRow, along: Sequence[ControlRow]) -> str:
    """Return why a control run has no half-change step to compare; empty where it has one."""
    if math.isfinite(run.half_step):
        return "" if run in along else _APART
    return _TWO_STEPS if abs(run.change) > 0 else "not recorded"


# Share of the run's change that a control makes at least, if their half-change steps compare.
COMPARABLE = 0.05
MOST_CONTROLS = 6  # control runs that are named one by one

# Columns of the half-change steps in files: a line for each mark of the forest plot.
_DATES = ("half_step", "half_step_low", "half_step_high")
MARKS = ("row", "quantity", "layer", "kind", "run", *_DATES, "filled", "verdict")


def mark_records(row: Row) -> list[list[Any]]:
    """Return the fields of `MARKS` for the run or runs of a row, and for its control runs."""
    head = [row.name, row.quantity, row.layer]
    runs = [(run.name, run.row, run.firm) for run in row.runs] or [("", row, row.firm)]
    marks: list[list[Any]] = []
    for name, of_run, firm in runs:
        dates = [getattr(of_run, date) for date in _DATES]
        marks.append([*head, "run", name, *dates, firm, state_words(of_run)])
    empty = [math.nan, math.nan, "", ""]
    return marks + [
        [*head, "control", c.name, c.half_step, *empty] for c in row.controls
    ]


def facts(row: Row) -> list[str]:
    """Return what is known of a row, most important first."""
    half = half_words(row)
    parts = [
        journey(row),
        f"half-change {{step}} {half}" if half else "",
        *_control_facts(row),
    ]
    if row.changed and math.isfinite(row.settled_step):
        step = step_text(row.settled_step)
        parts.append(
            f"after {{step}} {step} any further change is too small to measure"
        )
    of_change = f"p{BY_EXAMPLES}" if row.own_change_test else "p"
    tests = {
        of_change: row.p_value,
        "p of any order": row.p_order if row.reason == RowReason.ORDER else math.nan,
        "p of slow noise": row.p_slow if row.reason == RowReason.SLOW else math.nan,
        "p against controls": row.p_control,
        "p of the gain": row.p_learned,
    }
    parts += [p_words(p, name) for name, p in tests.items() if math.isfinite(p)]
    return list(filter(None, parts))


def spoken(row: Row) -> str:
    """Say for a screen reader what a row of the chart shows."""
    half = half_words(row)
    parts = [
        state_words(row),
        journey(row),
        f"half-change {{step}} {half}" if half else "",
    ]
    parts += half_facts(row) if row.runs else _control_facts(row)
    return f"{row.name}: {'; '.join(filter(None, parts))}"


def record(row: Row) -> list[Any]:
    """Return the fields of `RECORD`; of several controls joined by semicolons."""
    names = ("name", "first_value", "last_value", "half_step")
    controls = [[getattr(control, name) for control in row.controls] for name in names]
    return [
        state_words(row),
        direction(row),
        row.units,
        *(getattr(row, name) for name in (*NUMBERS, *_VERDICTS)),
        *(
            "; ".join("" if value != value else str(value) for value in part)
            for part in controls
        ),
    ]


def mean(values: Sequence[float]) -> float:
    """Return the mean of the known values, NaN of none."""
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else math.nan


def control_ends(row: Row) -> tuple[float, float]:
    """Return the mean over controls of first and of last values, NaN where there are none."""
    first, last = (
        [getattr(c, f"{end}_value") for c in row.controls] for end in ("first", "last")
    )
    return mean(first), mean(last)


def _control_facts(row: Row) -> list[str]:
    """Say what the controls do, their values first."""
    parts = []
    if ends := values_words(*control_ends(row), " → "):
        count = len(row.controls)
        parts.append(
            f"{f'mean of {count} control runs' if count > 1 else 'control run'} {ends}"
        )
    if steps := control_half_words(row):
        parts.append(f"half-change {{point}} of controls {steps}")
    return parts
