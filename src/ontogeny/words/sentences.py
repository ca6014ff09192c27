"""Sentences made of claims: those that stand alike are one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..claims import Certainty, Claim, Kind, Reason, Reference
from .catalogue.page import HEADINGS
from .catalogue.sentences import (
    COUNTS,
    OF_CONCEPTS,
    OF_LABELS,
    OF_QUANTITIES,
    OPEN_ABILITIES,
    OTHERWISE,
    PARTS,
    SENTENCES,
    SO_SURE,
)
from .formats import plural, sentence_start
from .measured_phrases import can_fill
from .phrases import Phrases
from .statements import Said
from .subjects import Names
from .voice import Voice

# Claims on the rows of a chart, the strongest first.
OF_ROWS = (Kind.LEARNED, Kind.FORGOT, Kind.BEYOND_MOTION, Kind.CHANGED)

# Claims that are joined over layers; others stand each in a sentence of its own.
_JOINED = (*OF_ROWS, Kind.DIFFERS)


def said(claims: Sequence[Claim], voice: Voice, names: Names) -> Said:
    """Return the sentence on claims of one kind and certainty.

    Examples
    --------
    >>> from ..claims import Subject
    >>> loss = Subject("loss", "loss")
    >>> claim = Claim(
    ...     Kind.LEARNED, loss, Certainty.SURE, first=6.14, last=2.18, units="nats"
    ... )
    >>> said([claim], Voice(), Names()).text
    'Loss improved by learning: from 6.14 to 2.18 nats.'
    """
    phrases = Phrases(claims, voice, names)
    template = _template_of(claims[0])
    lead, _, end = template.partition("; ")
    rest = phrases.filled(end)
    named = phrases.said(lead).phrases
    if not rest and "half" in named:
        rest = f"{phrases.half.removeprefix('. ')}."
    return replace(phrases.said(template), rest=rest, phrases=named - {"half"})


def left_of(one: Said, heading: Said, voice: Voice, names: Names) -> list[str] | None:
    """Return what a sentence gives beside a heading on its claims, a sentence each.

    None where its lead gives something else than `PARTS`, or where the heading is on other claims.
    """
    parts = one.phrases - heading.phrases
    is_counted = one.claims[0].kind in COUNTS
    if is_counted or not heading.tells(one) or not parts <= PARTS.keys():
        return None
    phrases = Phrases(one.claims, voice, names)
    left = [phrases.filled(text) for part, text in PARTS.items() if part in parts]
    # A heading without the reason of a doubt may not name the doubt either.
    if one.rest and "reason" not in heading.phrases:
        left.append(one.rest)
    return [*map(sentence_start, left)]


def _template_of(claim: Claim) -> str:
    """Return what is said of a claim: of its label, of its kind, or of any kind."""
    certainty = claim.certainty
    of_label = OF_LABELS.get(claim.subject.label, {}).get(claim.kind, {})
    is_told = claim.kind not in COUNTS or math.isfinite(claim.value)
    of_kind = SENTENCES.get(claim.kind, {}) if is_told else {}
    of_concept = OF_CONCEPTS.get(claim.kind, "") + SO_SURE[certainty]
    chosen = (
        of_label.get(certainty, ""),
        _of_quantity(claim),
        of_concept if _is_of_concept(claim) else "",
        of_kind.get(certainty, ""),
    )
    usable = (each for each in chosen if each and can_fill(each, claim))
    return next(usable, OTHERWISE[certainty])


def _of_quantity(claim: Claim) -> str:
    """Return what is said of such claims on a quantity; empty where there is nothing special."""
    of_kinds = OF_QUANTITIES.get(claim.subject.quantity, {})
    return of_kinds.get(claim.kind, {}).get(claim.certainty, "")


def _is_of_concept(claim: Claim) -> bool:
    """Return whether a claim is about one concept, whose strength it has; others count them."""
    return (
        claim.kind in OF_CONCEPTS
        and math.isfinite(claim.first)
        and bool(claim.subject.label)
    )


def standing_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Return of each row the claim that says the most of it, and all that are on no row.

    That is the first of `OF_ROWS` that is sure. Of a row that changed otherwise it is how its
    change lies to control runs, and else why the change is open.
    """
    rows: dict[tuple[str, ...], dict[Kind, Claim]] = {}
    others: list[Claim] = []
    for claim in claims:
        if claim.kind in OF_ROWS:
            rows.setdefault((claim.subject.run, *claim.subject.key), {})[claim.kind] = (
                claim
            )
        else:
            others.append(claim)
    return [*(strongest(of_row) for of_row in rows.values()), *others]


def strongest(of_row: dict[Kind, Claim]) -> Claim:
    """Return the claim that says the most of a row, given its claims by kind.

    How a change lies to control runs has no date of its own: it gets that of the change.
    """
    for kind in OF_ROWS[:3]:
        if kind in of_row and of_row[kind].certainty is Certainty.SURE:
            return of_row[kind]
    changed = of_row.get(Kind.CHANGED)
    beyond = of_row.get(Kind.BEYOND_MOTION)
    if changed is None:  # of an observable that claims no more than one of them
        return next(iter(of_row.values()))
    if changed.certainty is not Certainty.SURE or beyond is None:
        return changed
    dates = {
        name: getattr(changed, name) for name in ("since", "since_low", "since_high")
    }
    return replace(beyond, **dates)


def sentences(claims: Iterable[Claim], voice: Voice, names: Names) -> list[Said]:
    """Return all that claims say, those that stand alike in one sentence, what is sure first.

    Claims that are open since a change lies within noise are told together at the end, by how many
    they are.
    """
    alike: dict[tuple[object, ...], list[Claim]] = {}
    for number, claim in enumerate(standing_claims(claims)):
        subject = claim.subject
        alone = "" if _is_joined(claim) else number
        is_beside = claim.kind is Kind.DIFFERS and bool(claim.beside)
        null = claim.beside[0].name if is_beside else ""
        of = (subject.node, subject.quantity, null)
        key = (claim.kind, claim.certainty, claim.reason, of, alone)
        alike.setdefault(key, []).append(claim)
    groups = sorted(alike.values(), key=place_of)
    return [_said(group, voice, names) for group in groups if _is_told(group)]


def place_of(group: Sequence[Claim]) -> tuple[bool, float]:
    """Return by what sentences are ordered: changes that are open stand last."""
    first = group[0]
    return first.kind is Kind.CHANGED and first.reason is not None, -first.weight


def _is_joined(claim: Claim) -> bool:
    """Return whether one sentence tells several such claims."""
    if template := _of_quantity(claim):
        return "{each}" in template
    return (
        claim.kind in _JOINED
        or _is_of_concept(claim)
        or (claim.kind is Kind.ABOVE_CHANCE and bool(claim.reason))
    )


def _said(group: Sequence[Claim], voice: Voice, names: Names) -> Said:
    first = group[0]
    if first.kind is not Kind.ABOVE_CHANCE or len(group) == 1:
        return said(group, voice, names)
    template = OPEN_ABILITIES.format(
        some=len(group), all=first.corrected_over, reason="{reason}"
    )
    return Phrases(group, voice, names).said(template)


def _is_told(group: Sequence[Claim]) -> bool:
    """Return whether a sentence is worth its place: no zero is told (`ontogeny.claims`)."""
    first = group[0]
    if first.kind is Kind.PASSES and first.reason is Reason.NOT_REACHED:
        return first.subject.label == Reference.UNIFORM
    return not (first.kind in (Kind.BORN, Kind.FADED) and first.value == 0)


def reproduced(claims: Sequence[Claim]) -> Said | None:
    """Return how many claims of papers reproduce; None where none is answered."""
    asked = [c for c in claims if c.kind in (Kind.REPRODUCES, Kind.CONTRADICTS)]
    if not asked:
        return None
    found = [
        claim
        for claim in asked
        if claim.kind is Kind.REPRODUCES and claim.certainty is Certainty.SURE
    ]
    text = HEADINGS["reproduced"].format(
        some=len(found),
        claims=plural(len(asked), "claim"),
        s="s" if len(asked) == 1 else "",
    )
    return Said(text, tuple(asked))
