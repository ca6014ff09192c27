"""The tiles of the first screen: a number each, with what it is in a few words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...claims import Certainty, Claim, Kind, Reference
from ...words.catalogue.page import HELD_OUT, LOSS, TILES
from ...words.content import Content
from ...words.formats import interval_text, mid_sentence, number, step_text, value_range
from ...words.landmarks import LossCurve
from ...words.rows import counted_rows
from ..concepts.learned import born_beyond_controls, is_learned, told_births
from ..concepts.lives import Concepts

MOST = 4


@dataclass(frozen=True)
class Figure:
    """One of the numbers, what it is, and the place of the page that shows it."""

    value: str
    words: str
    link: str = ""


def numbers_of(
    content: Content,
    loss: LossCurve | None,
    concepts: Concepts | None,
    running: bool = False,
) -> tuple[Figure, ...]:
    """Return at most four numbers; what was not measured has none."""
    numbers = [
        *_of_loss(content, loss),
        *_of_performance(content, loss),
        *_of_abilities(content),
        *_of_changes(content),
        *_of_births(concepts),
        *_of_context(content, running),
        *_of_audit(content),
    ]
    return tuple(numbers[:MOST])


def _of_loss(content: Content, loss: LossCurve | None) -> Iterator[Figure]:
    if loss is None:
        return
    link = f"#{content.track_node.id}" if content.track_node else ""
    name = HELD_OUT if content.held_out else LOSS
    if content.runs:
        ends = [
            c.last
            for c in content.claims
            if c.kind is Kind.CHANGED and content.is_loss(c)
        ]
        last = value_range(ends or [loss.last], lambda value: number(value, 0.1))
        yield Figure(last, TILES["of runs"].format(count=len(content.runs)), link)
    elif loss.first == loss.last:
        yield Figure(number(loss.last, 0.1), name, link)
    else:
        was = TILES["was"].format(name=name, first=number(loss.first, 0.1))
        yield Figure(number(loss.last, 0.1), was, link)


def _of_performance(content: Content, loss: LossCurve | None) -> Iterator[Figure]:
    rows = [row for row in counted_rows(content.rows) if row.can_learn and not row.runs]
    if loss is not None or not rows:
        return
    row = rows[0]
    last = number(row.last_value, 0.01)
    name = mid_sentence(row.quantity)
    was = TILES["was"].format(name=name, first=number(row.first_value, 0.01))
    yield Figure(last, was, f"#{row.section}")


def _of_abilities(content: Content) -> Iterator[Figure]:
    able = [
        c for c in content.claims if c.kind is Kind.ABOVE_CHANCE and not c.subject.run
    ]
    above = sum(claim.certainty is Certainty.SURE for claim in able)
    if above:
        some = TILES["some"].format(some=above, all=len(able))
        yield Figure(some, TILES["able"], "#abilities")


def _of_changes(content: Content) -> Iterator[Figure]:
    """Give how many concepts a further training turned: beyond controls, or without any to test it."""
    every = [c for c in content.claims if c.kind is Kind.TURNED and not c.subject.run]
    sure = [claim for claim in every if claim.certainty is Certainty.SURE]
    untested = [claim for claim in every if claim.certainty is Certainty.NOT_TESTED]
    turned = sure or untested
    if turned:
        # Of single concepts, which have a strength, before counts of joint ones.
        single = sum(int(math.isfinite(claim.first)) for claim in turned)
        count = float(single) or sum(claim.value for claim in turned)
        words = TILES["turned" if sure else "turned, not tested"]
        yield Figure(f"{count:,.0f}", words, content.link(turned[0]))


def _of_births(concepts: Concepts | None) -> Iterator[Figure]:
    if concepts is None or not concepts.born:
        return
    if is_learned(concepts.data) and told_births(concepts.data) == 0:
        yield from _of_names(concepts)
        return
    counts = concepts.born_controls
    controls = value_range(counts, "{:,.0f}".format) if counts else ""
    # Controls are read at fewer checkpoints, which show fewer births.
    is_fewer = concepts.born_seen < len(concepts.born)
    beside = "born, comparable" if is_fewer else "born, beside"
    beyond = born_beyond_controls(concepts.data)
    number = len(concepts.born)
    if beyond and controls:
        words = TILES["named births"].format(count=f"{number:,}")
        yield Figure(f"{beyond:,}", words, "#atlas")
        return
    key = beside if controls else "born"
    words = TILES[key].format(seen=f"{concepts.born_seen:,}", controls=controls)
    if beyond is None and is_learned(concepts.data) and not controls:
        words += TILES["alone"]
    yield Figure(f"{number:,}", words, "#atlas")


def _of_names(concepts: Concepts) -> Iterator[Figure]:
    """Give how many concepts have a name, where births have none: large type is for what has one."""
    if not concepts.named:
        return
    counts = [count for count, _ in concepts.named_controls]
    controls = value_range(counts, "{:,.0f}".format) if counts else ""
    words = TILES["have names, beside" if controls else "have names"]
    words = words.format(controls=controls)
    if not controls:
        words += TILES["alone"]
    yield Figure(f"{concepts.named:,}", words, "#atlas")


def _of_context(content: Content, running: bool) -> Iterator[Figure]:
    """Give the step from which the loss is below word frequencies."""
    for claim in content.claims:
        if (
            claim.kind is not Kind.PASSES
            or claim.subject.label != Reference.FREQUENCIES
            or claim.subject.run
            or not content.is_loss(claim)
        ):
            continue
        below = content.voice.fill(TILES["below"])
        if content.one_model:
            yield from _apart(content, claim)
        elif claim.certainty is not Certainty.SURE:
            if running:
                yield Figure(TILES["not yet"], below, content.link(claim))
        elif claim.since_high > content.steps[0]:  # else nothing came about
            span = interval_text(claim.since_low, claim.since_high) or step_text(
                claim.since_high
            )
            yield Figure(span, f"{content.unit}: {below}", content.link(claim))


def _apart(content: Content, claim: Claim) -> Iterator[Figure]:
    """Give how far the loss of one model lies from what word frequencies cost."""
    apart = claim.last - claim.beside[0].value
    if math.isfinite(apart):
        side = "nats below" if apart < 0 else "nats above"
        named = content.voice.fill(TILES[side])
        yield Figure(number(abs(apart), 0.1), named, content.link(claim))


def _of_audit(content: Content) -> Iterator[Figure]:
    if content.findings:
        count = len(content.findings)
        words = TILES["finding" if count == 1 else "findings"]
        yield Figure(f"{count:,}", words, "#audit")
