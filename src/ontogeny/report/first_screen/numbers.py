"""The four numbers of the first screen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...words.content import Content
from ...words.formats import (
    interval_text,
    joined,
    mid_sentence,
    number,
    plural,
    step_text,
    value_range,
)  # fmt: skip
from ...words.landmarks import LossStory
from ...words.row_words import half_words
from ...words.rows import Row, counted_rows
from ...words.tuned import MOVED, counts_at_end
from ..concepts.lives import Concepts

_BETTER = "better than {word} frequencies"


@dataclass(frozen=True)
class Figure:
    """One of the four numbers, with what it is."""

    value: str
    words: str


def four_numbers(
    content: Content, loss: LossStory | None, concepts: Concepts | None, running: bool = False
) -> tuple[Figure, ...]:
    """Return the loss, the births, the step of passing word frequencies, the findings."""
    gains = [row for row in counted_rows(content.rows) if row.can_learn]
    if loss is None and gains:
        first, third = _of_gain(gains[0])
    else:
        first, third = _loss_number(loss), _passed_number(loss, "not yet" if running else "never")
    second = _changes_number(content) or _concepts_number(concepts)
    return first, second, third, audit_number(content)


def _of_gain(row: Row) -> tuple[Figure, Figure]:
    """Return the performance at the end, as an accuracy, and when half of its change was over."""
    last, first = (number(value, 0.01) for value in (row.last_value, row.first_value))
    name = ", ".join(filter(None, [mid_sentence(row.quantity), row.units]))
    half = half_words(row)
    unknown = "its half-change {point} is not known" if row.changed else "no sure change of it"
    return (
        Figure(last, f"{name}, was {first}"),
        Figure(half or "–", "{step}: half of its change over" if half else unknown),
    )


def numbers_of_one(content: Content, loss: LossStory | None) -> tuple[Figure, ...]:
    """Return the loss, what it lies below, the named concepts and the findings of one model."""
    numbers = [_loss_number(loss)]
    if loss is not None and (line := loss.lines.get("unigram")) is not None:
        apart = loss.last - line.level
        side = "below" if apart < 0 else "above"
        numbers.append(Figure(number(abs(apart), 0.1), f"nats {side} {{word}} frequencies"))
    for node in content.nodes:
        if "name" in node.dataset and "concentration" in node.dataset:
            names = node.dataset["name"].values.ravel()
            of = int(np.isfinite(node.dataset["concentration"].values).sum())
            numbers.append(Figure(f"{sum(map(bool, names)):,}/{of:,}", f"named: {node.title}"))
    return (*numbers, audit_number(content))[:4]


def _loss_number(loss: LossStory | None) -> Figure:
    if loss is None:
        return Figure("–", "loss was not measured")
    if loss.first == loss.last:
        return Figure(number(loss.last, 0.1), f"loss, {loss.units}".rstrip(", "))
    return Figure(number(loss.last, 0.1), f"loss, was {number(loss.first, 0.1)}")


def _concepts_number(concepts: Concepts | None) -> Figure:
    if concepts is None:
        return Figure("–", "births of concepts were not measured")
    born, gone = len(concepts.born), len(concepts.gone)
    words = "concept born" if born == 1 else "concepts born"
    ends = [end for c in concepts.born for end in (c.after, c.born, c.before)]
    if between := interval_text(min(ends, default=math.nan), max(ends, default=math.nan)):
        words += f", at {{step}}s {between}"
    words += f"; of all, {gone:,} faded by the end" if gone else ""
    if concepts.born_controls and concepts.control_steps:
        control = value_range(concepts.born_controls, "{:,}".format)
        read, seen = plural(concepts.control_steps, "checkpoint"), concepts.born_seen
        everywhere = concepts.control_steps == concepts.node.dataset.sizes["step"]
        apart = f"counted at the {read} of the controls: {seen:,} here, {control} in controls"
        of_controls = f"in controls {control}{'' if everywhere else f', read at {read}'}"
        words += f"; {of_controls if seen == born else apart}"
    return Figure(f"{born:,}", words)


def _changes_number(content: Content) -> Figure | None:
    """Return how many concepts a further training turned, lost and made; None where none did."""
    of_nodes = [counts_at_end(n.dataset) for n in content.nodes if "concepts_since" in n.dataset]
    counts = next(filter(None, of_nodes), None)
    if counts is None or not content.based or content.headline:
        return None
    moved = [f"{counts[kind]:,} {kind}" for kind in MOVED]
    words = f"of {plural(sum(counts.values()), 'concept')} {joined(moved)} since the base"
    return Figure(f"{sum(counts[kind] for kind in MOVED):,}", words)


def _passed_number(loss: LossStory | None, never: str) -> Figure:
    line = loss.lines.get("unigram") if loss else None
    if line is None:
        return Figure("–", "{word} frequencies: no line to compare with")
    better = _BETTER if loss and loss.uses_context else "loss below {word} frequencies"
    if line.state == "passed":
        span = interval_text(line.low, line.high) or step_text(line.high)
        return Figure(span, f"{{step}}: {better}")
    if line.state == "always":
        return Figure("first", f"checkpoint: {better}")
    words = {"never": never, "left": "not for good", "unsure": "not surely"}[line.state]
    return Figure(words, _BETTER)


def audit_number(content: Content) -> Figure:
    """Return how many findings the audit had."""
    if not content.audited:
        return Figure("–", "no audit was made")
    count = len(content.findings)
    return Figure(f"{count:,}", f"{'finding' if count == 1 else 'findings'} of the audit")
