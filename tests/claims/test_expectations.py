"""Files of expectations: what is met, what fails and how it is said, and what cannot be read."""

import pytest

from ontogeny.claims import Certainty, Claim, Kind, Reason, Subject
from ontogeny.claims.expectations import KINDS, failures, parse
from ontogeny.errors import ArgumentError

CLAIMS = [
    Claim(
        Kind.LEARNED,
        Subject("loss", "loss"),
        Certainty.SURE,
        first=6.0,
        last=4.25,
        since=16.0,
        since_high=32.0,
    ),
    Claim(
        Kind.ABOVE_CHANCE,
        Subject("minimal-pairs", "accuracy", label="agreement of verbs"),
        Certainty.OPEN,
        Reason.FEW_CONTRASTS,
        needed=5,
    ),
    Claim(
        Kind.BEYOND_MOTION,
        Subject("entropy", "layer_entropy", "h.0.attn"),
        Certainty.NOT_TESTED,
        Reason.NO_CONTROLS,
    ),
    Claim(Kind.DAMAGED, Subject(label="identical", step=40.0), Certainty.SURE),
    Claim(
        Kind.CHANGED,
        Subject("entropy", "layer_entropy", "h.0.attn"),
        Certainty.AS_CONTROLS,
    ),
]


@pytest.mark.parametrize(
    "line",
    [
        "learned loss",
        "learned LOSS below 4.5 by 32",
        "learned loss above 4 below 5",
        "learned",
        "no forgot loss",
        "no above-chance agreement of verbs",
        "no changed entropy/h.0.attn",
    ],
)
def test_what_is_claimed_meets_what_is_expected(line):
    assert failures(CLAIMS, parse(line)) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("learned loss below 4", "it is 4.25"),
        ("learned loss above 5", "it is 4.25"),
        ("learned loss by 20", "it holds surely from 32"),
        ("no learned loss", "it is sure"),
        ("no damaged", "it is sure (identical, step 40)"),
        ("above-chance agreement of verbs", "open (too few contrasts; 5 would do)"),
        ("beyond-motion h.0.attn", "not tested (no controls)"),
        ("changed entropy", "as controls"),
        ("forgot loss", "not tested"),
    ],
)
def test_each_failure_is_a_line_with_its_reason(line, why):
    assert failures(CLAIMS, parse(line)) == [f"{line}: {why}"]


def test_what_is_open_may_be_let_pass_and_what_was_not_tested_may_not():
    lines = parse("above-chance agreement of verbs\nbeyond-motion h.0.attn")
    [failed] = failures(CLAIMS, lines, allow_open=True)
    assert failed.startswith("beyond-motion")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learnd loss", r"line 1 .*'learnd loss'.*did you mean 'learned'"),
        (
            "\n# nothing\n no",
            "line 3 of the expectations must begin with what happened",
        ),
        ("learned loss by soon", "number after above, below or by, .*got 'soon'"),
        *(
            (f"learned loss below {word}", f"got '{word}'")
            for word in ("4,5", "4_5", "1,00", "nan", "inf", "٤")
        ),
        ("learned loss below 5 below 3", "'below' once; got 'learned loss below 5 b"),
        ("no learned loss by 10", "'no', which allows no above, below or by"),
        ("no born below 3", "'no', which allows no above, below or by"),
        ("# nothing", "at least one line"),
    ],
)
def test_lines_that_cannot_be_read_are_named(text, message):
    with pytest.raises(ArgumentError, match=f"(?i){message}"):
        parse(text)


def test_a_subject_that_nothing_measured_is_refused_with_the_nearest():
    with pytest.raises(ArgumentError, match=r"there is no 'los'.*'loss'"):
        failures(CLAIMS, parse("learned los"))


@pytest.mark.parametrize(
    ("word", "number"),
    [("12,000", 12000), ("1,234.5", 1234.5), ("1e3", 1000), (".25", 0.25), ("-3", -3)],
)
def test_numbers_are_read_as_they_are_written(word, number):
    assert parse(f"learned loss above {word}")[0].above == number


def test_every_kind_can_be_expected():
    assert [parse(word)[0].kind for word in KINDS] == list(Kind)


def test_a_bound_without_its_number_is_refused_as_such():
    with pytest.raises(
        ArgumentError, match=r"a number after above, below or by, .*got 'noth"
    ):
        parse("changed entropy above")
