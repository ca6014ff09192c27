"""What the numbers support, in words that carry their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .content import Content
from .formats import count, interval_text, plain_text, plural, step_text
from .rows import Row, judged

__all__ = ["MIN_STEPS", "Verdict", "studied", "verdict"]

MIN_STEPS = 6
"""Fewer steps cannot tell a trend from chance: no order of them is rare enough."""


@dataclass(frozen=True)
class Verdict:
    """The overview: a heading, its sentences, and how many rows developed."""

    heading: str
    sentences: tuple[str, ...]
    developed: int
    judged: int


def verdict(content: Content) -> Verdict:
    """Say what developed, when, and how sure that is; or plainly that nothing did."""
    rows = judged(content.rows)
    developed = [row for row in rows if row.developed]
    if len(content.steps) < MIN_STEPS:
        heading = "Too few steps to tell"
        lines = [
            f"The trajectory has {plural(len(content.steps), 'step')}; at least {MIN_STEPS} are needed "
            "to tell development from chance. The figures show what was measured."
        ]
    elif not rows:
        heading = "No development was tested"
        lines = ["No observable of this study has rows that are tested against chance and noise."]
    elif not developed:
        heading = "No development"
        lines = [_nothing(rows)]
    else:
        heading = _heading(rows, developed)
        lines = [_quantity_sentence(group) for group in _by_quantity(rows)]
    return Verdict(heading, tuple(lines + _motion(content.rows)), len(developed), len(rows))


def _nothing(rows: Sequence[Row]) -> str:
    what = "the one quantity" if len(rows) == 1 else f"the {len(rows):,} quantities"
    return (
        f"None of {what} measured here changed by more than refitting and resampling change it, "
        "in an order that chance would rarely give."
    )


def _heading(rows: Sequence[Row], developed: Sequence[Row]) -> str:
    if len(rows) == 1:
        return "It developed"
    if len(developed) == len(rows):
        return f"All {len(rows):,} quantities developed"
    return f"{len(developed):,} of {len(rows):,} quantities developed"


def _by_quantity(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.section, row.quantity), []).append(row)
    return list(groups.values())


def _quantity_sentence(rows: Sequence[Row]) -> str:
    """One quantity over its layers: how many developed, the earliest, the latest, when it settled."""
    quantity = rows[0].quantity
    done = [row for row in rows if row.developed]
    if not done:
        where = "" if len(rows) == 1 else f" in any of {len(rows):,} layers"
        return f"{quantity}: no change{where} that rises above noise and chance."
    timed = sorted(
        (row for row in done if math.isfinite(row.half_step)), key=lambda row: row.half_step
    )
    if len(rows) == 1 or not timed:
        return " ".join(filter(None, [_half_sentence(done[0]), _settled_sentence(done)]))
    share = "all" if len(done) == len(rows) else f"{len(done):,} of"
    parts = [f"{quantity} developed in {share} {len(rows):,} layers"]
    if len(timed) == 1:
        parts[0] += f" ({_place(timed[0])}): half of the change was done {_by(timed[0])}"
    else:
        parts[0] += (
            f": half of the change was done {_by(timed[0])} in {_place(timed[0])}, the earliest, "
            f"and {_by(timed[-1])} in {_place(timed[-1])}, the latest"
        )
    return " ".join(filter(None, [parts[0] + ".", _settled_sentence(done)]))


def _half_sentence(row: Row) -> str:
    owner = f"{row.short_layer}'s {row.quantity}" if row.short_layer else row.quantity
    if not math.isfinite(row.half_step):
        return f"{owner} changed by more than noise and chance; no half-way step can be named."
    return f"Half of the change of {owner} was done {_by(row)}."


def _by(row: Row) -> str:
    spread = interval_text(row.half_step_low, row.half_step_high)
    return f"by step {step_text(row.half_step)}" + (f" ({spread})" if spread else "")


def _place(row: Row) -> str:
    return row.short_layer or row.label


def _settled_sentence(done: Sequence[Row]) -> str:
    """From when on nothing moves more than refitting does, over all rows that developed."""
    settled = [row.settled_step for row in done]
    last = max(row.steps[-1] for row in done)
    if not all(math.isfinite(s) for s in settled) or max(settled) >= last:
        return ""
    subject = "it moves" if len(done) == 1 else "they all move"
    return f"After step {step_text(max(settled))} {subject} less than refitting does."


def _motion(rows: Sequence[Row]) -> list[str]:
    moving = [row for row in rows if row.role == "motion"]
    if not moving:
        return []
    moved = sum(row.developed for row in moving)
    return [
        f"The weights moved in {moved:,} of {plural(len(moving), 'measured block')}; "
        "that says nothing about function by itself and does not count in the verdict."
    ]


def studied(content: Content) -> str:
    """Return in one line what was studied: model, steps, inputs, date, version."""
    model = plain_text(content.model.get("class") or content.model.get("name") or "")
    parameters = content.model.get("parameters")
    if isinstance(parameters, int | float):
        model = ", ".join(filter(None, [model, f"{count(parameters)} parameters"]))
    first, last = content.steps[0], content.steps[-1]
    reach = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
    steps = f"{plural(len(content.steps), 'checkpoint')}, {reach}"
    version = f"ontogeny {content.version}" if content.version else ""
    day = content.created.split("T")[0]
    parts = [model, steps, *map(_input_line, content.inputs), day, version]
    return " · ".join(part for part in parts if part)


def _input_line(item: object) -> str:
    data = item if isinstance(item, dict) else {}
    sizes = [
        f"{data[key]:,} {key}" for key in ("texts", "tokens") if isinstance(data.get(key), int)
    ]
    return plain_text(": ".join(filter(None, [str(data.get("name", "")), ", ".join(sizes)])))
