"""Headings and sentences of two sets of texts: both steps, whatever their intervals."""

import dataclasses
import math

import pytest

from helpers import report_examples as examples
from ontogeny.claims import Certainty, Claim, Kind, Reason, Subject
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.words.catalogue.page import MOST_WORDS
from ontogeny.words.content import read_content
from ontogeny.words.known_texts import heading_of_sets, sentences_of_sets
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice


def known(kind, since=math.nan, reason=None, last=1.0):
    label = "training" if kind is Kind.MEMORISED else "held-out"
    certainty = Certainty.SURE if reason is None else Certainty.OPEN
    fields = {"first": 0.04, "last": last, "units": "1", "since": since}
    fields |= {"since_low": since / 2, "since_high": 2 * since}
    return Claim(
        kind,
        Subject("training-texts", "set_accuracy", label=label),
        certainty,
        reason,
        **fields,
    )


FIRST = "It memorised its training texts from step"
SHORT = Reason.BELOW_SHARE


@pytest.mark.parametrize(
    ("memorised", "generalises", "heading"),
    [
        ((12600.0,), (84000.0,), f"{FIRST} 12,600, generalises from step 84,000"),
        ((150.0,), (150.0,), "It generalises from step 150"),
        ((300.0,), (150.0,), "It generalises from step 150"),
        ((60.0,), (math.nan, SHORT), f"{FIRST} 60; generalising is not shown"),
        ((math.nan, SHORT), (150.0,), "It generalises from step 150"),
        ((math.nan, SHORT), (math.nan, SHORT), ""),
    ],
)
def test_the_heading_has_both_steps_in_few_words(memorised, generalises, heading):
    claims = [known(Kind.GENERALISES, *generalises), known(Kind.MEMORISED, *memorised)]
    told = heading_of_sets(claims, Voice(), Names())
    assert (told.text if told else "") == heading
    assert len(heading.split()) <= MOST_WORDS


@pytest.mark.parametrize(
    ("sure", "heading"),
    [
        ((Kind.MEMORISED, Kind.GENERALISES), "It generalises from step 100, overfits"),
        ((Kind.MEMORISED,), f"{FIRST} 100, overfits"),
        ((), "It overfits"),
    ],
)
def test_the_heading_does_not_hide_that_the_run_overfits_in_the_end(sure, heading):
    claims = [known(kind, 100.0) for kind in sure] + [known(Kind.OVERFITS, 450.0)]
    told = heading_of_sets(claims, Voice(), Names()).text
    assert told == f"{heading} from step 450"
    assert len(told.split()) <= MOST_WORDS


def test_sentences_come_in_the_order_of_training_with_intervals_or_why_they_are_open():
    claims = [
        known(Kind.GENERALISES, math.nan, SHORT, last=0.64),
        known(Kind.MEMORISED, 60.0),
    ]
    told = [one.text for one in sentences_of_sets(claims, Voice(), Names())]
    assert told == [
        "It has memorised its training texts from step 60 (30–120): 100 % right in the end.",
        (
            "It is not shown to generalise to held-out texts, 64 % right in the end: "
            "95 % is not reached for good."
        ),
    ]


def test_beside_training_texts_the_loss_is_that_of_held_out_texts():
    content = read_content(examples.controlled_tree())
    assert not content.held_out
    claims = [*content.claims, known(Kind.GENERALISES, 40.0)]
    both = dataclasses.replace(content, claims=claims)
    screen = first_screen(both)
    assert both.held_out
    assert any(line.lead.startswith("Held-out loss ") for line in screen.sentences)
    assert any(each.words.startswith("held-out loss") for each in screen.numbers)
