"""Keys of right answers: one meaning for a file, and what two meanings fit is refused."""

import json

import pytest

from ontogeny.errors import ArgumentError
from ontogeny.observables import Choices


def places(tmp_path, rows, **options):
    file = tmp_path / "q.jsonl"
    records = [
        {"prompt": "Say", "answers": answers, "right": key} for answers, key in rows
    ]
    file.write_text("\n".join(map(json.dumps, records)))
    questions, left_out = Choices(str(file), **options).read()
    return [question.right for question in questions], left_out


XY, THREE = ["x", "y"], ["x", "y", "z"]


@pytest.mark.parametrize(
    ("rows", "right"),
    [
        (
            [(["A", "a"], "a"), (["A", "a"], "A")],
            [1, 0],
        ),  # as it stands, not without its case
        ([(["Cold", "cold", "hot"], "cold")], [1]),
        ([(XY, "A"), (XY, "B")], [0, 1]),
        ([(XY, "a"), (XY, "B")], [0, 1]),  # no meaning fits both as they stand
        ([(["Hot", "Cold"], "cold"), (["Hot", "Cold"], "HOT")], [1, 0]),
        ([(XY, 0), (XY, 1)], [0, 1]),
        ([(XY, "1"), (XY, "2")], [0, 1]),
        ([(THREE, "01"), (THREE, "03")], [0, 2]),
        ([(THREE, "00"), (THREE, "01")], [0, 1]),
        ([(XY, 1.0), (XY, 0.0)], [1, 0]),
        (
            [(["B", "A"], "A"), (XY, "B")],
            [0, 1],
        ),  # a letter in the second, so in the first as well
        ([(["2", "4"], "4"), (["1", "2"], "2")], [1, 1]),  # a text in the first
        ([(["1", "2", "0"], 2), (["x", "y", "z"], 0)], [2, 0]),
        ([(["A", "B"], "A"), (["A", "B"], "B")], [0, 1]),  # two meanings that agree
    ],
)
def test_keys_have_one_meaning_that_fits_all_questions(tmp_path, rows, right):
    assert places(tmp_path, rows) == (right, [])


@pytest.mark.parametrize(
    ("rows", "one", "other", "says"),
    [
        ([(["B", "A"], "A")], "as a text it is 'A'", "as a letter it is 'B'", "letter"),
        (
            [(THREE, 1), (THREE, "2")],
            "counted from 0 it is 'y'",
            "from 1 it is 'x'",
            "from 1",
        ),
        (
            [(["1", "2", "0"], "1")],
            "as a text it is '1'",
            "counted from 0 it is '2'",
            "text",
        ),
    ],
)
def test_two_meanings_that_fit_all_are_refused_and_the_advice_works(
    tmp_path, rows, one, other, says
):
    with pytest.raises(ArgumentError) as refused:
        places(tmp_path, rows)
    line = str(refused.value)
    assert (
        "q.jsonl, line 1" in line and one in line and other in line and "\n" not in line
    )
    assert f'keys = "{says}"' in line
    assert len(places(tmp_path, rows, keys=says)[0]) == len(rows)


def test_a_key_that_fits_nothing_is_named_and_does_not_decide(tmp_path):
    right, left_out = places(tmp_path, [(XY, "A"), (XY, "B"), (XY, "wet"), (XY, "")])
    assert right == [0, 1] and len(left_out) == 2
    assert "line 3: its right answer 'wet' is none of its 2 answers" in left_out[0]


def test_the_meaning_of_most_holds_and_the_others_are_named(tmp_path):
    rows = [([f"hot {i}", "cold"], "cold") for i in range(3)] + [(["hot", "cold"], "B")]
    right, left_out = places(tmp_path, rows)
    assert right == [1, 1, 1]
    assert (
        "line 4" in left_out[0]
        and "as a text, as keys of this file are read" in left_out[0]
    )


def test_a_question_that_repeats_another_one_is_left_out_and_named(tmp_path):
    right, left_out = places(
        tmp_path, [(XY, "A"), (XY, "B"), (XY, "A"), (["y", "x"], "A")]
    )
    assert right == [0, 1, 0] and left_out == [
        "q.jsonl, line 3: it repeats another one"
    ]


def test_another_meaning_is_refused():
    with pytest.raises(ArgumentError, match="keys must be one of"):
        Choices("q.jsonl", keys="number")


def test_labels_of_public_tasks_are_read_as_labels_alone(tmp_path):
    file = tmp_path / "arc.jsonl"
    rows = [
        {
            "question": "?",
            "answerKey": key,
            "choices": {"text": list("BAx"), "label": labels},
        }
        for key, labels in (("A", list("ABC")), ("2", list("123")))
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert [q.right for q in Choices(str(file)).read()[0]] == [0, 1]
