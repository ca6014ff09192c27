"""At which steps a recording takes a checkpoint."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ontogeny import Recorder
from ontogeny.errors import ArgumentError
from ontogeny.trajectory.schedule import Schedule

PYTHIA = [0, *(2**k for k in range(10)), *range(1000, 144_000, 1000)]


def due(schedule, last):
    return [step for step in range(last + 1) if schedule.due(step)]


def test_the_default_for_a_run_of_unknown_length_is_that_of_pythia():
    schedule = Schedule.coerce("log")
    assert list(schedule.planned(143_000)) == PYTHIA and len(PYTHIA) == 154
    assert due(schedule, 5000) == [step for step in PYTHIA if step <= 5000]


@given(st.integers(1, 300_000))
def test_a_run_of_known_length_gets_about_thirty_two(total):
    steps = Schedule.coerce("log", total).planned(total)
    assert steps[0] == 0 and steps[-1] == total and list(steps) == sorted(set(steps))
    assert len(steps) == total + 1 if total < 32 else 17 <= len(steps) <= 32
    assert total < 63 or len(steps) >= 24
    gaps = [after - before for before, after in itertools.pairwise(steps)]
    widest = max(gaps)
    # Evenly spaced late: the second half of the run has one gap, but for what is left at the end.
    late = [
        gap for gap, before in zip(gaps, steps, strict=False) if before >= total / 2
    ]
    assert set(late[:-1]) <= {widest}
    # Log-spaced early: powers of two as long as they lie closer than that.
    assert all(2**k in steps for k in range(20) if 2 ** (k + 1) < widest)


@given(
    st.one_of(
        st.just("log"), st.integers(1, 40), st.lists(st.integers(0, 300), max_size=8)
    ),
    st.one_of(st.none(), st.integers(1, 200)),
    st.integers(0, 300),
)
def test_what_is_planned_is_what_is_due(every, total, last):
    schedule = Schedule.coerce(every, total)
    planned = schedule.planned(last)
    assert list(planned) == due(schedule, last) and planned[0] == 0
    restored = Schedule.from_record(json.loads(json.dumps(schedule.to_record())))
    assert restored.planned(last) == planned


def test_a_run_that_goes_on_beyond_its_total_stays_evenly_spaced():
    steps = Schedule.coerce("log", 1000).planned(1200)
    assert steps[-6:] == (1000, 1040, 1080, 1120, 1160, 1200)


def test_functions_and_lists_are_asked_and_step_zero_is_always_there(tmp_path):
    model = nn.Linear(1, 1)
    odd = Recorder(tmp_path / "odd", every=lambda step: step % 4 == 3)
    assert [s for s in range(9) if odd(s, model)] == [0, 3, 7]
    listed = Recorder(tmp_path / "listed", every=[5, 2])
    assert [s for s in range(9) if listed(s, model)] == [0, 2, 5] == listed.steps
    assert Schedule.from_record(odd.schedule.to_record()) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"every": "linear"},
            "every must be 'log', a number of steps, .* got 'linear'",
        ),
        ({"every": 0}, "every must be at least 1; got 0"),
        ({"every": 2.5}, r"every must be an integer, zero or more; got 2\.5"),
        ({"every": [1, -2]}, "every must be an integer, zero or more; got -2"),
        ({"every": True}, "every must be an integer"),
        ({"total": 0}, "total must be at least 1"),
        ({"tokenizer": "bert"}, "tokenizer must have save_pretrained"),
        ({"dtype": "float16"}, "dtype must be a floating-point"),
    ],
)
def test_bad_arguments_are_refused_before_training_begins(tmp_path, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Recorder(tmp_path, **arguments)


def test_bad_steps_and_models_are_refused(tmp_path):
    record = Recorder(tmp_path)
    with pytest.raises(ArgumentError, match="step must be an integer"):
        record(-1, nn.Linear(1, 1))
    with pytest.raises(ArgumentError, match=r"model must be an nn\.Module; got dict"):
        record(0, {})
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="is a file"):
        Recorder(tmp_path / "file")
