"""What the numbers support, in words that carry their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .content import LAYER_DIMENSIONS, Content, Node
from .formats import count, plain_text, plural, step_text, with_interval
from .labels import with_short_layers
from .rows import Row, judged

MIN_STEPS = 6
"""Fewer steps cannot tell a trend from chance: no order of them is rare enough."""


CLAIMED = ("reproduces", "does not reproduce", "not shown")
"""Answers to what a paper claims; other rows of such a table are not counted."""

ALPHA = 0.01
"""Level of the tests of development; p-values come corrected (Holm) within each section."""


@dataclass(frozen=True)
class Verdict:
    """The overview: a heading, what matters most, what it rests on, and the number of rows."""

    heading: str
    lead: str
    details: tuple[str, ...]
    developed: int
    judged: int


def verdict(content: Content) -> Verdict:
    """Say what developed, when, and how sure that is; or plainly that nothing did."""
    if content.headline:  # a comparison of runs says itself what they show together
        return _own(content.headline)
    rows = judged(content.rows)
    developed = [row for row in rows if row.developed]
    claims = [node for node in content.nodes if node.role == "claims"]
    if claims:
        heading = ", ".join(claims_sentence(node) for node in claims)
        lead = "Each claim stands below with what was measured, and what chance or a control gives."
    elif len(content.steps) < MIN_STEPS:
        heading = "Too few steps to tell"
        lead = (
            f"The trajectory has {plural(len(content.steps), 'step')}; at least {MIN_STEPS} are "
            "needed to tell development from chance. The figures show what was measured."
        )
    elif not rows:
        heading = "No development was tested"
        lead = "No observable of this study has rows that are tested against chance and noise."
    elif not developed:
        heading, lead = "No development", _nothing(rows)
    else:
        heading, lead = _heading(rows, developed), _first_and_last(developed)
    details = (*_basis(rows), *_weight_change(content.rows))
    return Verdict(heading, lead, details, len(developed), len(rows))


def _own(headline: Mapping[str, Any]) -> Verdict:
    """Return the verdict that a result brings along."""
    heading, lead = (str(headline.get(name) or "") for name in ("heading", "lead"))
    learned, judged = (int(headline.get(name) or 0) for name in ("learned", "judged"))
    details = tuple(map(str, headline.get("details") or ()))
    return Verdict(heading, lead, details, learned, judged)


def claims_sentence(node: Node) -> str:
    """Say how many of a paper's claims a node of role ``claims`` finds again."""
    given = [str(answer) for answer in node.dataset["answer"].values]
    answers = [answer for answer in given if answer in CLAIMED]
    held = answers.count("reproduces")
    return f"{held} of {plural(len(answers), 'claim')} {'reproduces' if held == 1 else 'reproduce'}"


def mark(node: Node) -> tuple[str, str]:
    """Say how a node stands in the verdict: a mark for the list of sections and its meaning."""
    if own := node.dataset.attrs.get("mark"):
        return "untested", plain_text(own)
    rows = judged(node.rows)
    if node.role == "motion":
        return "motion", "weight change"
    if node.role == "claims":
        return "untested", claims_sentence(node)
    if not rows:
        return "untested", "not tested for development"
    developed = sum(row.developed for row in rows)
    words = f"{developed:,} of {plural(len(rows), 'row')} developed"
    if developed == 0:
        return "none", words
    return ("all" if developed == len(rows) else "some"), words


def row_state(row: Row) -> str:
    """Say how a row stands in the table of all rows."""
    words = {"motion": "weight change", "undeveloped": "not distinguishable"}
    return words.get(row.group, row.group)


def spoken(row: Row) -> str:
    """Say for a screen reader what a row of the chart shows."""
    if not row.developed:
        return f"{row.name}: not distinguishable from chance and noise"
    return f"{row.name}: half-change step {step_text(row.half_step)}"


def section_sentences(node: Node) -> list[str]:
    """Return the statements of a node, with layers named in short."""
    coords = [node.dataset[d] for d in LAYER_DIMENSIONS if d in node.dataset.coords]
    paths = {plain_text(value) for labels in coords for value in labels.values.ravel()}
    paths.update(row.layer for row in node.rows if row.layer)
    return [with_short_layers(text, sorted(paths)) for text in node.statements]


def _basis(rows: Sequence[Row]) -> list[str]:
    """Say how many rows were tested, and at which level where their p-values bear it out."""
    if not rows:
        return []
    sections = len({row.section for row in rows})
    words = f"{plural(len(rows), 'row')} in {plural(sections, 'section')} were tested"
    if len(rows) == 1:
        words = "1 row was tested"
    called = [row.p_value for row in rows if row.developed]
    if not all(p <= ALPHA for p in called):  # another level, or none is known
        return [f"{words}."]
    correction = "p corrected by Holm’s method within each section"
    return [f"{words} at α = {ALPHA:g}, {correction}."]


def _nothing(rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        subject = f"{sentence_start(rows[0].name)} did not change"
    else:
        subject = f"None of the {len(rows):,} quantities measured here changed"
    return (
        f"{subject} by more than refitting and resampling change it, in an order over the steps "
        "that chance would rarely give."
    )


def _heading(rows: Sequence[Row], developed: Sequence[Row]) -> str:
    if len(rows) == 1:
        return f"{sentence_start(rows[0].quantity)} developed"
    if len(developed) < len(rows):
        return f"{len(developed):,} of {len(rows):,} quantities developed"
    return f"{'Both' if len(rows) == 2 else f'All {len(rows):,}'} quantities developed"


def _first_and_last(developed: Sequence[Row]) -> str:
    """Say when the first and the last row reached half of their change, and when all settled."""
    known = (row for row in developed if math.isfinite(row.half_step))
    timed = sorted(known, key=lambda row: row.half_step)
    if not timed:
        return _settled_sentence(developed)
    first, last = timed[0], timed[-1]
    if len(timed) == 1:
        words = f"Half of the change of {_owner(first)} was done {_by(first)}."
    else:
        words = (
            f"The first to reach half of its change was {_owner(first)}, {_by(first)}; "
            f"the last was {_owner(last)}, {_by(last)}."
        )
    return " ".join(filter(None, [words, _settled_sentence(developed)]))


def _by(row: Row) -> str:
    return f"by step {with_interval(row.half_step, row.half_step_low, row.half_step_high)}"


def _owner(row: Row) -> str:
    """Whose change it is: ``layer 3's ICA concepts``; ``layer 3`` stays on one line."""
    quantity = mid_sentence(row.quantity)
    layer = row.short_layer.replace(" ", "\N{NO-BREAK SPACE}")
    return f"{layer}\N{RIGHT SINGLE QUOTATION MARK}s {quantity}" if layer else quantity


def _settled_sentence(done: Sequence[Row]) -> str:
    """From when on none of the rows that developed moves by more than refitting moves it."""
    settled = [row.settled_step for row in done]
    last = max(row.steps[-1] for row in done)
    if not all(math.isfinite(s) for s in settled) or max(settled) >= last:
        return ""
    moves = "it moves less than its" if len(done) == 1 else "they all move less than their"
    return f"After step {step_text(max(settled))} {moves} noise floor."


def _weight_change(rows: Sequence[Row]) -> list[str]:
    moving = [row.developed for row in rows if row.role == "motion"]
    if not moving:
        return []
    words = (
        f"The weights changed in {sum(moving):,} of {plural(len(moving), 'row')} that follow them; "
        "that says nothing about function by itself and does not count in the verdict."
    )
    return [words]


def sentence_start(text: str) -> str:
    """Return `text` with a capital first letter.

    Examples
    --------
    >>> sentence_start("attention entropy")
    'Attention entropy'
    """
    return text[:1].upper() + text[1:]


def mid_sentence(text: str) -> str:
    """Return `text` as it stands within a sentence: lower case, unless it starts with a name.

    Examples
    --------
    >>> mid_sentence("Loss on held-out text"), mid_sentence("ICA concepts")
    ('loss on held-out text', 'ICA concepts')
    """
    first = text.split(" ")[0]
    return text[:1].lower() + text[1:] if first[1:].islower() else text


def studied(content: Content) -> str:
    """Return in one line what was studied: model, steps, inputs, date, version."""
    model = plain_text(content.model.get("class") or content.model.get("name") or "")
    parameters = content.model.get("parameters")
    if isinstance(parameters, int | float):
        model = ", ".join(filter(None, [model, f"{count(parameters)} parameters"]))
    first, last = content.steps[0], content.steps[-1]
    unit = content.clock.removeprefix("training ").removesuffix("s")
    reach = f"{unit} {first:,}" if first == last else f"{unit}s {first:,} to {last:,}"
    steps = f"{plural(len(content.steps), 'checkpoint')}, {reach}"
    version = f"ontogeny {content.version}" if content.version else ""
    day = content.created.split("T")[0]
    parts = [model, steps, *map(_input_line, content.inputs), day, version]
    return " · ".join(part for part in parts if part)


def _input_line(item: object) -> str:
    data = item if isinstance(item, dict) else {}
    sizes = [
        plural(data[key], noun)
        for key, noun in (("texts", "text"), ("tokens", "token"))
        if isinstance(data.get(key), int)
    ]
    return plain_text(": ".join(filter(None, [str(data.get("name", "")), ", ".join(sizes)])))
