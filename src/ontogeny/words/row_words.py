"""What a row of the chart says, in words and as a record: the same in all its places."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dynamics.reasons import Reason
from .formats import (
    interval_text,
    number,
    p_words,
    plural,
    plus_minus,
    sentence_start,
    step_text,
    with_interval,
)
from .reasons import NOT_CHANGED, UNJUDGED
from .rows import NUMBERS, ControlRow, Row
from .states import EVERY, NO, SOME, State

UNCONTROLLED = "A run that moved as far and learned nothing may look the same."

_IN = {EVERY: "{} in every run", SOME: "{} in some runs", NO: "not shown to have {} in any run"}

# Which test said that it changed, where the quantity brings one.
BY_EXAMPLES = " on these examples (exact test)"

# How a change lies to those of all control runs, as `Row.side` names it.
SIDES = {"more": "by more than", "less": "by less than", "other": "otherwise than"}

_SO_WHAT = {True: "which are too few to decide", False: "not shown to be beyond motion"}


def _states(changed: str) -> dict[State, str]:
    """Return where a row stands, in the order of the chart; `changed` says by which test."""
    of_runs = {
        "learned": ("learned", ""),
        "beyond": (f"{changed} beyond its motion", ""),
        "mixed": (changed, ", beyond its motion where controls were run"),
        "changed": (changed, "; no control was run"),
    }
    return {
        **{
            State(n, what): where.format(of) + more
            for n, where in _IN.items()
            for what, (of, more) in of_runs.items()
        },
        State("learned"): "learned",
        State("lost"): "lost: worse than at first by more than motion gives",
        State("beyond"): "changed beyond its motion",
        **{
            State("outside", side, few): f"{changed} {words} all controls, {so_what}"
            for side, words in SIDES.items()
            for few, so_what in _SO_WHAT.items()
        },
        State("within"): f"{changed}, no more than controls",
        State("too few controls"): f"{changed}; its control runs cannot judge it",
        State("uncontrolled"): f"{changed}; not compared with controls",
        **{State(kind): f"not judged, {why}" for kind, why in UNJUDGED.items()},
        State("none"): "not distinguishable from chance and noise",
        State("motion"): "weight change",
    }


STATES = _states("changed")
_BY_EXAMPLES = {
    state: words if state.kind == NO else by_examples
    for (state, words), by_examples in zip(
        STATES.items(), _states(f"changed{BY_EXAMPLES}").values(), strict=True
    )
}

# Headings of the groups of rows that stand alike.
HEADINGS = {state: sentence_start(words) for state, words in STATES.items()} | {
    State("motion"): "Weight change (need not change what the model does)"
}

# Columns of a row in files, behind those of each step.
RECORD = (
    "verdict", "direction", "units", *NUMBERS, "noise_known", "reason", "judgeable", "changed",
    "beyond", "learned", "controls", "control_first", "control_last", "control_half_step",
)  # fmt: skip


def state_words(row: Row) -> str:
    """Say how a row stands, and which test decided; of one that did not change, what it lacks."""
    if row.state.kind == "none":
        return f"{STATES[row.state]}: moved {NOT_CHANGED[Reason(row.reason)]}"
    by_examples = row.own_change_test and not row.beyond
    return (_BY_EXAMPLES if by_examples else STATES)[row.state]


def apart_from_controls(rows: Sequence[Row]) -> str:
    """Say how many rows changed by more or by less than all controls; empty where none did."""
    sides = Counter(row.side for row in rows if row.changed)
    return ", ".join(f"{sides[s]} {words} every control" for s, words in SIDES.items() if sides[s])


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


_TWO_STEPS, _APART = "not known: read at two usable {checkpoint}s", "went another way, or far less"


def control_half_words(row: Row) -> str:
    """Return the range of the controls' half-change steps, ``40–90``, or why none is known.

    Empty where no control was read or none moved.
    """
    steps = control_half_steps(row)
    if not steps:
        return _TWO_STEPS if _TWO_STEPS in map(_step_or_none, row.controls) else ""
    return interval_text(min(steps), max(steps)) or step_text(steps[0])


def controls_along(row: Row) -> list[ControlRow]:
    """Return the controls that went in the run's direction, and not far less: their steps compare.

    Losses of random motion rise where that of the run falls; both have a half-change step.
    """
    of_run = [c.run_change if math.isfinite(c.run_change) else row.change for c in row.controls]
    both = zip(row.controls, of_run, strict=True)
    return [c for c, change in both if c.change * change >= COMPARABLE * change**2 > 0]


def controls_went_along(row: Row) -> bool:
    """Return whether controls have half-change steps, and all of them compare."""
    return control_half_steps(row) != [] and controls_along(row) == [*row.controls]


def control_half_steps(row: Row) -> list[float]:
    """Return the half-change steps of the controls whose steps compare with the run's."""
    return [run.half_step for run in controls_along(row) if math.isfinite(run.half_step)]


def half_facts(row: Row) -> list[str]:
    """Say when a row, or each of its runs, was half-way, and when each control run was."""
    if not row.runs:
        return [_half_fact(row), *_half_facts_of_controls(row)]
    runs = [f"{run.name}: {_half_fact(run.row)}, {state_words(run.row)}" for run in row.runs]
    return [*runs, *_half_facts_of_controls(row)]


def _half_fact(row: Row) -> str:
    if not math.isfinite(row.half_step):
        return "no half-change {point}"
    ends = with_interval(row.half_step, row.half_step_low, row.half_step_high)
    return f"half-change {{step}} {ends}"


def _half_facts_of_controls(row: Row) -> list[str]:
    """Say when each control run was half-way; of many their range."""
    along, steps = controls_along(row), control_half_steps(row)
    words = [_step_or_none(run, along) for run in row.controls]
    if len(row.controls) <= MOST_CONTROLS:
        return [f"{run.name}: {text}" for run, text in zip(row.controls, words, strict=True)]
    of_all = [f"{plural(len(steps), 'control run')}: {control_half_words(row)}"] if steps else []
    without = Counter(text for text in words if text in (_APART, _TWO_STEPS, "not recorded"))
    return [*of_all, *(f"{plural(n, 'control run')}: {why}" for why, n in without.items())]


def _step_or_none(run: ControlRow, along: Sequence[ControlRow] = ()) -> str:
    if math.isfinite(run.half_step):
        return step_text(run.half_step) if run in along else _APART
    return _TWO_STEPS if abs(run.change) > 0 else "not recorded"


# Share of the run's change that a control makes at least, if their half-change steps compare.
COMPARABLE = 0.05
MOST_CONTROLS = 6  # control runs that are named one by one

# Columns of the half-change steps in files: a line for each mark of the forest plot.
MARKS = (
    "row", "quantity", "layer", "kind", "run", "half_step", "half_step_low", "half_step_high",
    "filled", "verdict",
)  # fmt: skip


def mark_records(row: Row) -> list[list[Any]]:
    """Return the fields of `MARKS` for the run or runs of a row, and for its control runs."""
    head = [row.name, row.quantity, row.layer]
    runs = [(run.name, run.row, run.firm) for run in row.runs] or [("", row, row.firm)]
    ends = ("half_step", "half_step_low", "half_step_high")
    marks = [
        [*head, "run", name, *(getattr(of_run, end) for end in ends), firm, state_words(of_run)]
        for name, of_run, firm in runs
    ]
    empty = [math.nan, math.nan, "", ""]
    return marks + [[*head, "control", c.name, c.half_step, *empty] for c in row.controls]


def facts(row: Row) -> list[str]:
    """Return what is known of a row, most important first."""
    half = half_words(row)
    parts = [journey(row), f"half-change {{step}} {half}" if half else "", *_control_facts(row)]
    if row.changed and math.isfinite(row.settled_step):
        step = step_text(row.settled_step)
        parts.append(f"after {{step}} {step} any further change is too small to measure")
    of_change = f"p{BY_EXAMPLES}" if row.own_change_test else "p"
    tests = {
        of_change: row.p_value,
        "p of any order": row.p_order if row.reason == Reason.ORDER else math.nan,
        "p of slow noise": row.p_slow if row.reason == Reason.SLOW else math.nan,
        "p against controls": row.p_control,
        "p of the gain": row.p_learned,
    }
    parts += [p_words(p, name) for name, p in tests.items() if math.isfinite(p)]
    return list(filter(None, parts))


def spoken(row: Row) -> str:
    """Say for a screen reader what a row of the chart shows."""
    half = half_words(row)
    parts = [state_words(row), journey(row), f"half-change {{step}} {half}" if half else ""]
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
        *(getattr(row, name) for name in NUMBERS),
        *(row.noise_known, row.reason, row.judgeable, row.changed, row.beyond, row.learned),
        *("; ".join("" if value != value else str(value) for value in part) for part in controls),
    ]


def values_words(first: float, last: float, between: str = " to ") -> str:
    """Return two values with three digits, and more where their difference is small.

    Examples
    --------
    >>> values_words(8.3441, 5.0211), values_words(0.91, 0.9123), values_words(8, float("nan"))
    ('8.34 to 5.02', '0.910 to 0.912', '')
    """
    if not (math.isfinite(first) and math.isfinite(last)):
        return ""
    largest = max(abs(first), abs(last))
    precision = 10.0 ** (math.floor(math.log10(largest)) - 1) if largest else math.nan
    precision = min(precision, 10 * abs(last - first) or precision)
    return between.join(number(value, precision) for value in (first, last)).replace("-", "−")


def change_words(row: Row) -> str:
    """Say by how much a row changed, with the noise of that: ``fell by 0.0076 ± 0.0080``."""
    verb = "fell" if row.change < 0 else "rose"
    return f"{verb} by {plus_minus(abs(row.change), row.change_floor)}"


def mean(values: Sequence[float]) -> float:
    """Return the mean of the known values, NaN of none."""
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else math.nan


def control_ends(row: Row) -> tuple[float, float]:
    """Return the mean over controls of first and of last values, NaN where there are none."""
    first, last = ([getattr(c, f"{end}_value") for c in row.controls] for end in ("first", "last"))
    return mean(first), mean(last)


def _control_facts(row: Row) -> list[str]:
    """Say what the controls do, their values first."""
    parts = []
    if ends := values_words(*control_ends(row), " → "):
        count = len(row.controls)
        parts.append(f"{f'mean of {count} control runs' if count > 1 else 'control run'} {ends}")
    if steps := control_half_words(row):
        parts.append(f"half-change {{point}} of controls {steps}")
    return parts
