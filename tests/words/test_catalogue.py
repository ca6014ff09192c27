"""Every template with every clock and with modules that are called as steps and tokens are."""

import math
import re
from dataclasses import replace

import pytest

from helpers.claimed import flat
from ontogeny.claims import RULES, Beside, Certainty, Claim, Kind, Reason, Subject
from ontogeny.words.catalogue.page import HEADINGS
from ontogeny.words.catalogue.sentences import (
    COUNTS,
    OF_CONCEPTS,
    OF_QUANTITIES,
    OTHERWISE,
    REASONS,
    SENTENCES,
    STANDINGS,
)
from ontogeny.words.phrases import Phrases
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

CLOCKS = ("training step", "training epoch", "training tokens", "training checkpoint")
LAYERS = ("step", "word", "token", "epoch")
TITLE = "agreement"
MOST_WORDS = 20
UNSETTLED = (Certainty.OPEN, Certainty.NOT_TESTED)
TEMPLATES = flat(SENTENCES)
MEASURED = [
    (quantity, certainty)
    for quantity, kind, certainty in flat(OF_QUANTITIES)
    if kind is Kind.MEASURED
]
EVERY = [(kind, certainty) for kind in Kind for certainty in Certainty]


def claim_of(kind, certainty, layer="h.0", reason=Reason.FEW_TEXTS, of_concept=False):
    """A claim with all that a template may ask for."""
    is_count = kind in COUNTS and not of_concept
    controls = [Beside("control", f"turned {i}", -0.1 * i, 1.0) for i in (1, 2)]
    references = [Beside("reference", "step", 6.3, 4.0), Beside("null", "chance", 6.6)]
    return Claim(
        kind,
        Subject("node", "agreement", layer, "step", step=40.0),
        certainty,
        reason if certainty in UNSETTLED else None,
        value=3.0,
        low=2.5,
        high=3.5,
        first=math.nan if is_count else 0.9,
        last=0.4,
        units="nats per token",
        since=127.0,
        since_low=108.0,
        since_high=135.0,
        needed=7.0,
        beside=(*references, *controls),
    )


def told(claims, clock, token=""):
    names = Names({("node", "agreement"): TITLE}, {}, {("node", "agreement"): 4})
    return said(claims, Voice(clock, token), names).text


def bare(text):
    """A sentence without names, numbers and the units of numbers."""
    for name in (TITLE, TITLE.capitalize(), "h.0", "nats per token", "“step”"):
        text = text.replace(name, "")
    return re.sub(r"\([^)]*\)", "", text)


def words_in(text):
    return [word for word in bare(text).split() if re.search("[a-z]{2}|^a$", word)]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("kind", "certainty"), EVERY)
def test_every_kind_and_certainty_is_a_whole_sentence_on_every_clock(
    kind, certainty, clock
):
    text = told([claim_of(kind, certainty)], clock)
    begins_with_name = TEMPLATES.get((kind, certainty), "").startswith("{label}")
    assert text.endswith(".") and (begins_with_name or not text[0].islower())
    assert not re.search(r"[{}]|\bnan\b|None|  | [.,;:]|\(\)|\.\.", text), text
    assert len(words_in(text)) <= MOST_WORDS, text


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("quantity", "certainty"), MEASURED)
def test_every_number_of_an_observable_is_a_whole_sentence(quantity, certainty, clock):
    whole = Beside("whole", "", 24.0)
    parts = [Beside("part", name) for name in ("x", "y")]
    claim = claim_of(Kind.MEASURED, certainty)
    subject = replace(claim.subject, quantity=quantity, label="“step”")
    for last in (1.0, 3.0, 0.25):
        beside = (*claim.beside, whole, *parts)
        one = replace(claim, subject=subject, last=last, beside=beside)
        text = told([one], clock)
        assert text.endswith(".") and not text[0].islower()
        assert not re.search(r"[{}]|\bnan\b|None|  | [.,;:]|\(\)|\.\.", text), text
        assert len(words_in(text)) <= MOST_WORDS, text
        unit = Voice(clock).unit
        assert {*re.findall(r"\b(\w+) (?:127|40)\b(?! %)", text)} <= {unit}, text


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("certainty", list(Certainty))
@pytest.mark.parametrize("kind", list(OF_CONCEPTS))
def test_single_concepts_are_named_on_every_clock(kind, certainty, clock):
    text = told([claim_of(kind, certainty, of_concept=True)], clock)
    assert text.startswith("1 concept ") and "“step”" in text
    assert (f" by {Voice(clock).unit} 127" in text) == (kind in (Kind.BORN, Kind.FADED))
    assert len(words_in(text)) <= MOST_WORDS and text.endswith(".")


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_module_keeps_its_name_and_a_step_has_that_of_the_clock(clock, layer):
    unit = Voice(clock).unit
    for kind, certainty in TEMPLATES:
        claim = claim_of(kind, certainty, layer)
        text = told([claim], clock)
        other = told(
            [replace(claim, subject=replace(claim.subject, layer="zzz"))], clock
        )
        assert text == other.replace("zzz", layer), "only the name differs"
        dates = re.findall(r"\b(\w+) (?:127|40)\b(?! %)", text)
        assert {*dates} <= {unit}, text


@pytest.mark.parametrize("token", ["", "character", "move"])
def test_tokens_are_called_what_they_are(token):
    word = token or "word"
    for kind, label in (
        (Kind.PASSES, "word frequencies"),
        (Kind.GAINS_FROM, "frequencies"),
    ):
        claim = claim_of(kind, Certainty.SURE)
        claim = replace(claim, subject=replace(claim.subject, label=label))
        assert f"{word} frequencies" in told([claim], CLOCKS[0], token)
    only = claim_of(Kind.LEARNED, Certainty.OPEN, reason=Reason.PREFERENCES)
    assert f"prefers other {word}s" in told([only], CLOCKS[0], token)


@pytest.mark.parametrize("reason", list(Reason))
def test_what_is_open_names_its_reason_and_no_other(reason):
    stated = {each: REASONS[each].format(word="word", needed="") for each in Reason}
    others = {words for each, words in stated.items() if words not in stated[reason]}
    for kind, certainty in EVERY:
        if certainty not in UNSETTLED:
            continue
        text = told([claim_of(kind, certainty, reason=reason)], CLOCKS[0])
        template = TEMPLATES.get((kind, certainty), OTHERWISE[certainty])
        assert (stated[reason].split("{")[0] in text) == ("{reason}" in template), text
        assert not any(words in text for words in others), text


def test_reasons_are_different_words():
    words = list(REASONS.values())
    assert {*REASONS} == {*Reason} and len({*words}) == len(words)


@pytest.mark.parametrize("reason", [Reason.FEW_CONTROLS, Reason.FEW_CONTRASTS])
def test_how_many_would_do_is_said_where_it_is_known(reason):
    claim = claim_of(Kind.LEARNED, Certainty.OPEN, reason=reason)
    assert "(7 would do)" in told([claim], CLOCKS[0])
    assert "would do" not in told([replace(claim, needed=math.nan)], CLOCKS[0])


@pytest.mark.parametrize(("kind", "certainty"), EVERY)
def test_what_is_open_is_never_said_to_be_not_so(kind, certainty):
    """ "Not" stands only where it is not shown, not tested, or shown by a test of its own."""
    text = told([claim_of(kind, certainty)], CLOCKS[0])
    denied = re.sub(r"\bnot (shown|tested|known)\b|no (more|control)\b", "", text)
    is_denial = (kind, certainty) == (Kind.CONTRADICTS, Certainty.SURE)
    assert (" not " in denied) == is_denial, text


def test_certainty_is_told_apart_by_words():
    for kind in Kind:
        texts = [
            told([claim_of(kind, certainty)], CLOCKS[0]) for certainty in Certainty
        ]
        assert kind is Kind.KEPT or len({*texts}) == len(texts), texts


@pytest.mark.parametrize("number", ["-0.1", "1e-9", "0.0"])
def test_small_and_negative_numbers_are_written_with_a_minus(number):
    claim = replace(claim_of(Kind.CHANGED, Certainty.SURE), last=float(number))
    assert not re.search(r"(?<!\d)-\d", told([claim], CLOCKS[0]))


def test_a_sure_claim_needs_no_more_than_its_kind_asks_for():
    """A claim of a third party has the fields that its kind must have, and perhaps no other."""
    for kind in Kind:
        fields = dict.fromkeys(RULES[kind].fields, 1.0)
        if RULES[kind].beside:
            fields["beside"] = (Beside("reference", "chance", 0.5),)
        least = Claim(
            kind, Subject("node", "agreement", "h.0", "x"), Certainty.SURE, **fields
        )
        text = told([least], CLOCKS[0])
        assert text.endswith(".") and not re.search(
            r"\bnan\b|None|not measured", text
        ), text


def test_standings_are_those_that_rows_have_and_say_what_their_sentences_say():
    for (kind, certainty), words in STANDINGS.items():
        assert (kind, certainty) in TEMPLATES
        assert len(words.split()) <= 6
        assert ("not tested" in words) == (certainty is Certainty.NOT_TESTED)


# With long reasons a page takes the same heading without its reason.
REASONED = ("fell", "moved")


@pytest.mark.parametrize("key", [key for key in HEADINGS if key not in REASONED])
def test_headings_have_at_most_twelve_words(key):
    claim = claim_of(Kind.LEARNED, Certainty.OPEN)
    counts = {"some": "12", "all": "48", "count": "6 checkpoints", "rows": "48 rows"}
    counts |= {
        "abilities": "48 abilities",
        "are": "are",
        "as_controls": "5",
        "open": "3",
    }
    counts |= {"claims": "48 claims", "s": "", "name": "loss"}
    names = {"one": "words", "others": "context", "names": "“a”, “b” and 3 more"}
    fixed = {**counts, **names, "other": "step 40 (30–60)"}
    template = HEADINGS[key]
    for name, text in fixed.items():
        template = template.replace(f"{{{name}}}", text)
    for reason in Reason:
        names = Names({("node", "agreement"): TITLE})
        text = Phrases([replace(claim, reason=reason)], Voice(), names).filled(template)
        assert len(re.findall(r"[^\s\d]*[a-z][^\s\d]*", text)) <= 12, text
        assert not text.endswith(".")
