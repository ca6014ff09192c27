"""Revision names: steps and tokens of the known suites, lists, functions, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.trajectory.hub.names import (
    UnknownRevisionError,
    choose,
    compile_pattern,
    parse,
)

KNOWN = compile_pattern(None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step0", (0, None)),
        ("step143000", (143_000, None)),
        ("step1000-tokens4B", (1000, 4_000_000_000)),
        ("stage1-step101000-tokens424B", (101_000, 424_000_000_000)),
        ("stage2-ingredient3-step11931-tokens50B", (11_931, 50_000_000_000)),
        ("step10000", (10_000, None)),
        ("step_20k", (20_000, None)),
        ("multiberts-seed_0-step_2000k", (2_000_000, None)),
        ("seed3-step512", (512, None)),
        ("checkpoint-500", (500, None)),
        ("main", None),
        ("step", None),
        ("step-final", None),
        ("step10x", None),
    ],
)
def test_names_of_the_known_suites_give_step_and_tokens(name, expected):
    assert parse(name, KNOWN) == expected


@given(st.integers(0, 10**7), st.integers(1, 9999))
def test_any_number_is_read_exactly(step, tokens):
    name = f"stage1-step{step}-tokens{tokens}B"
    assert parse(name, KNOWN) == (step, tokens * 10**9)


def test_decimals_are_exact_and_fractions_of_a_token_are_refused():
    assert parse("step7-tokens4.2B", KNOWN) == (7, 4_200_000_000)
    with pytest.raises(ArgumentError, match="no whole number"):
        parse("step7-tokens4.25", compile_pattern("olmo"))


def pythia():
    steps = [0, *(2**k for k in range(10)), *range(1000, 143_001, 1000)]
    return ["main", *(f"step{s}" for s in sorted(steps, key=str))], sorted(steps)


def olmo():
    steps = list(range(1000, 30_000, 1000))
    names = [f"stage1-step{s}-tokens{round(s * 4.19)}M" for s in sorted(steps, key=str)]
    return ["main", *names], steps


def eurobert():
    steps = list(range(10_000, 490_000, 10_000))
    return ["main", *(f"step{s}" for s in sorted(steps, key=str))], steps


def multiberts():
    steps = [0, *range(20, 201, 20), *range(300, 2001, 100)]
    return [f"step_{s}k" for s in sorted(steps, key=str)], [s * 1000 for s in steps]


@pytest.mark.parametrize("suite", [pythia, olmo, eurobert, multiberts])
def test_branch_lists_of_four_suites_give_the_steps_in_numerical_order(suite):
    names, steps = suite()
    commits = {name: f"{k:040x}" for k, name in enumerate(names)}
    chosen = choose(commits, "*step*", None, False, "o/r")
    assert list(chosen.names) == steps and chosen.noted == () and chosen.gaps == {}
    tokens = {t for _, t in chosen.names.values()}
    assert (None in tokens) == (suite is not olmo)


LATER = "stage2-ingredient1-step1000-tokens3B"


@pytest.mark.parametrize(
    ("names", "pattern", "steps"),
    [
        (pythia()[0], None, pythia()[1]),
        ([*olmo()[0], LATER], None, olmo()[1]),
        ([*olmo()[0], LATER], "olmo", olmo()[1]),
        (
            ["step1000-tokens4B", "step0-tokens0B", "stage1-step7-tokens1B"],
            None,
            [0, 1000],
        ),
        (multiberts()[0], "multiberts", multiberts()[1]),
        (["main", "checkpoint-500", "checkpoint-20"], None, [20, 500]),
        (["main", "run-a/it3", "run-b/it4"], r"run-a/it(?P<step>\d+)", [3]),
    ],
)
def test_without_a_choice_the_usual_names_of_the_suite_are_taken(names, pattern, steps):
    commits = {name: f"{k:040x}" for k, name in enumerate(names)}
    chosen = choose(commits, None, pattern, False, "o/r")
    assert list(chosen.names) == steps and chosen.noted == () and chosen.gaps == {}


def test_without_a_choice_names_that_may_be_of_several_runs_are_not_mixed():
    commits = {
        f"seed{seed}-step{step}": f"{seed}{step}" for seed in (1, 2) for step in (0, 9)
    }
    with pytest.raises(UnknownRevisionError, match="seed1-step0"):
        choose(commits, None, None, False, "o/r")


def test_a_users_own_expression_and_function():
    commits = {"run-a/it7": "1" * 40, "run-a/it12": "2" * 40, "main": "3" * 40}
    own = choose(commits, "run-a/*", r"run-a/it(?P<step>\d+)", False, "o/r")
    assert own.names == {7: ("run-a/it7", None), 12: ("run-a/it12", None)}
    compiled = choose(
        commits, "run-a/*", re.compile(r".*it(?P<step>\d+)"), False, "o/r"
    )
    assert compiled.names == own.names

    def to_step(name):
        return None if name == "main" else int(name.rpartition("it")[2])

    assert choose(commits, to_step, None, False, "o/r").names == own.names


@pytest.mark.parametrize("pattern", ["step(", r"step(\d+)", 3])
def test_a_pattern_without_a_step_is_refused(pattern):
    with pytest.raises(ArgumentError, match="pattern"):
        compile_pattern(pattern)


def test_of_two_names_for_one_step_the_shorter_counts_and_it_is_said():
    commits = {
        "step5-v2": "1" * 40,
        "step5": "2" * 40,
        "step6": "3" * 40,
        "step6-x": "3" * 40,
    }
    chosen = choose(commits, "step*", r"step(?P<step>\d+).*", False, "o/r")
    assert chosen.names == {5: ("step5", None), 6: ("step6", None)}
    assert [(f.kind, f.certainty, f.steps) for f in chosen.noted] == [
        ("ambiguous", "certain", (5,))
    ]
    backwards = dict(reversed(commits.items()))
    assert choose(backwards, "step*", r"step(?P<step>\d+).*", False, "o/r") == chosen


COMMITS = {f"step{s}": f"{s:040x}" for s in (0, 100, 200, 400)} | {"main": "f" * 40}


def test_a_list_takes_names_and_steps_and_what_is_missing_becomes_a_gap():
    chosen = choose(COMMITS, ["step100", 400, 300, "step7"], None, False, "o/r")
    assert list(chosen.names) == [100, 400] and list(chosen.gaps) == [7, 300]
    assert "nearest are step100, step200, step400" in chosen.gaps[300]
    with pytest.raises(
        CheckpointError, match=r"no revision 300; .* step100, step200, step400\."
    ):
        choose(COMMITS, [100, 300], None, True, "o/r")


@pytest.mark.parametrize(
    ("revisions", "error", "message"),
    [
        (
            "step300",
            CheckpointError,
            "no revision 'step300'; the nearest are step100, step200",
        ),
        ("stpe*", CheckpointError, "matches 'stpe\\*'; it has 5, such as main, step0"),
        (["final"], CheckpointError, "no revision 'final'; the nearest are"),
        (["main"], ArgumentError, "no step can be read from 'main'"),
        ("m*", ArgumentError, "pattern="),
        ([], CheckpointError, "chosen by revisions="),
        ([-1], ArgumentError, "zero or more"),
        (7, ArgumentError, "revisions must be a glob"),
        (lambda name: None, CheckpointError, "chosen by revisions="),
        (lambda name: "x", ArgumentError, "must be an integer"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_there_is(revisions, error, message):
    with pytest.raises(error, match=message):
        choose(COMMITS, revisions, None, False, "o/r")


def test_an_empty_repository_is_said_to_be_empty():
    with pytest.raises(CheckpointError, match="o/r is empty"):
        choose({}, "step*", None, False, "o/r")


def test_a_name_without_a_number_is_left_out_and_noted():
    chosen = choose(COMMITS | {"step-final": "e" * 40}, "step*", None, False, "o/r")
    assert list(chosen.names) == [0, 100, 200, 400]
    assert [(f.kind, f.message) for f in chosen.noted] == [
        ("unnumbered", "no step can be read from step-final, left out")
    ]


def stages(*names):
    return {name: f"{k:040x}" for k, name in enumerate(names)}


def test_a_glob_over_stages_that_count_their_steps_anew_is_refused_and_names_them():
    first = [f"stage1-step{s}-tokens{s}M" for s in (1000, 2000, 9000)]
    second = [f"stage2-ingredient1-step{s}-tokens{s}M" for s in (1500, 3000)]
    commits = stages(*first, *second)
    with pytest.raises(ArgumentError) as caught:
        choose(commits, "stage*", None, False, "o/r")
    message = str(caught.value)
    assert "stage1-step* (steps 1000 to 9000)" in message
    assert "stage2-ingredient1-step* (steps 1500 to 3000)" in message
    advised = re.search(r"such as revisions='(.*?)'", message)[1]
    assert list(choose(commits, advised, None, False, "o/r").names) == [
        1000,
        2000,
        9000,
    ]
    own = stages("run-a/it3", "run-a/it9", "run-b/it4")
    with pytest.raises(
        ArgumentError, match="several runs of o/r that count their steps anew"
    ):
        choose(own, None, r".*/it(?P<step>\d+)", False, "o/r")


def test_names_of_several_stages_that_are_listed_or_go_on_are_a_finding():
    anew = ["stage1-step1000", "stage1-step5000", "stage2-step2000"]
    listed = choose(stages(*anew), anew, r"stage\d-step(?P<step>\d+)", False, "o/r")
    going_on = choose(
        stages("part1-step10", "part1-step20", "part2-step30"),
        "part*",
        None,
        False,
        "o/r",
    )
    for chosen, other in (
        (listed, "stage2-step* (steps 2000"),
        (going_on, "part2-step* (steps 3"),
    ):
        assert [(f.kind, f.certainty) for f in chosen.noted] == [("mixed", "certain")]
        assert other in chosen.noted[0].message


def test_two_names_of_one_commit_are_no_two_runs():
    commits = stages("step10", "step20", "step30") | {"v1/step10": f"{0:040x}"}
    assert choose(commits, "*step*", None, False, "o/r").noted == ()


def test_a_count_of_tokens_before_the_step_makes_no_runs():
    commits = stages("3B-step10", "6B-step20", "9B-step30")
    assert choose(commits, "*step*", r".*step(?P<step>\d+)", False, "o/r").noted == ()


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["iter_100", "iter_200"], {100: "iter_100", 200: "iter_200"}),
        (["run-a-epoch-1", "run-a-epoch-2"], {1: "run-a-epoch-1", 2: "run-a-epoch-2"}),
        (["ckpt-1k", "ckpt-10k", "v1"], {1000: "ckpt-1k", 10_000: "ckpt-10k"}),
    ],
)
def test_names_of_one_form_whose_words_mark_steps_are_taken_without_a_choice(
    names, steps
):
    chosen = choose({name: name for name in ["main", *names]}, None, None, False, "o/r")
    assert {step: name for step, (name, _) in chosen.names.items()} == steps


@pytest.mark.parametrize(
    "names",
    [
        ["a_iter_1", "a_iter_2", "b_ep_1", "b_ep_2"],
        ["v1", "w2"],
        ["4bit", "8bit"],
        ["3_0", "4_0"],
        ["1b", "7b", "13b"],
        ["2023", "2024"],
    ],
)
def test_names_of_several_forms_are_not_taken_unasked(names):
    with pytest.raises(UnknownRevisionError, match="no revision of o/r matches"):
        choose({name: name for name in ["main", *names]}, None, None, False, "o/r")
