"""Counts of what a page says add up, and agree with the standings that they count."""

from dataclasses import replace

import pytest

from helpers.concept_trees import learned
from ontogeny.claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ontogeny.report.concepts.nodes import _rank, read_concepts
from ontogeny.words import page_claims
from ontogeny.words.content import read_content
from ontogeny.words.selection import counted
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice


def moved(number, certainty):
    reason = Reason.SHORT_MEMORY if certainty is Certainty.OPEN else None
    subject = Subject("node", "x", label=str(number))
    return Claim(Kind.BEYOND_MOTION, subject, certainty, reason, first=1.0, last=2.0)


@pytest.mark.parametrize(
    ("alike", "open_ones", "words"),
    [
        (5, 3, "8 of 8 measures changed; 5 as control runs do, 3 open"),
        (0, 3, "3 of 3 measures changed; beyond controls is open"),
        (4, 0, "4 of 4 measures changed as control runs do"),
    ],
)
def test_changes_like_those_of_controls_are_not_counted_as_open(
    alike, open_ones, words
):
    kinds = [Certainty.AS_CONTROLS] * alike + [Certainty.OPEN] * open_ones
    found = counted([moved(i, kind) for i, kind in enumerate(kinds)])
    assert found.text == words
    assert len(found.claims) == alike + open_ones


@pytest.mark.parametrize(
    ("labels", "rest"),
    [
        ("a b c", ""),
        ("a a b", "1 more"),
        ("a b c d e", "2 more"),
        ("a a b c d d", "3 more"),
    ],
)
def test_names_and_how_many_more_are_as_many_as_are_counted(labels, rest):
    labels = labels.split()
    beside = (Beside("control", "walk 0", 0.0),)
    claims = [
        Claim(
            Kind.BORN,
            Subject("node", "strength", "h.0", label, step=float(i)),
            Certainty.SURE,
            first=0.1,
            last=0.4,
            since=10.0,
            beside=beside,
        )
        for i, label in enumerate(labels)
    ]
    text = said(claims, Voice(), Names({}, {}, {})).text
    assert text.startswith(f"{len(labels)} concepts")
    named = min(len(set(labels)), 3)
    assert text.count("“") == named
    assert (f"{len(labels) - named} more" in text) == bool(rest)
    assert rest in text


def test_an_ability_that_is_judged_is_judged_once(monkeypatch):
    def differs(label):
        subject = Subject("pairs", "accuracy", label=label)
        return Claim(Kind.DIFFERS, subject, Certainty.OPEN, Reason.WITHIN_CHANCE)

    of_one = [differs("plural"), differs("all groups")]
    able = Claim(
        Kind.ABOVE_CHANCE,
        Subject("pairs", "accuracy", label="plural"),
        Certainty.SURE,
        last=1.0,
    )
    nothing = {"claims_of_rows": [], "_unmeasured": [], "_of_papers": []}
    for name, found in {**nothing, "claims_of_one_model": of_one}.items():
        monkeypatch.setattr(page_claims, name, lambda *_, found=found: found)
    monkeypatch.setattr(page_claims, "claims_of_abilities", lambda _: [able])
    monkeypatch.setattr(page_claims, "is_one_model", lambda _: True)
    monkeypatch.setattr(page_claims, "rows_tested", lambda _: {})
    monkeypatch.setattr(page_claims, "_orders", lambda _: [])
    kinds = [
        (claim.kind, claim.subject.label)
        for claim in page_claims.claims_of({"pairs": None}, {})
    ]
    assert sorted(kinds) == sorted(
        [(Kind.ABOVE_CHANCE, "plural"), (Kind.DIFFERS, "all groups")]
    )


def test_cards_begin_with_the_births_that_the_first_screen_counts():
    one = read_concepts(read_content(learned())).every[0]
    known = replace(one, name="a name", kind="born", sharpness=1.0)
    made = replace(known, born=10.0, beyond_controls=True)
    sharper = replace(known, born=float("nan"), beyond_controls=True, sharpness=9.0)
    as_controls = replace(made, beyond_controls=False, sharpness=9.0)
    unnamed = replace(made, name="", given="", sharpness=99.0)
    order = [made, sharper, as_controls, unnamed]
    mixed = [unnamed, as_controls, sharper, made]
    assert sorted(mixed, key=_rank) == order
