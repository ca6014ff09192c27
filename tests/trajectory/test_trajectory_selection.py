"""Thinning a trajectory."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from ontogeny import Trajectory
from ontogeny.errors import ArgumentError
from ontogeny.trajectory.selection import spread

step_lists = st.lists(
    st.integers(0, 200_000), min_size=1, max_size=12, unique=True
).map(sorted)


def trajectory(steps):
    return Trajectory.from_models({step: nn.Linear(1, 1) for step in steps})


@given(step_lists, st.integers(2, 14), st.sampled_from(["log", "linear"]))
def test_selection_has_the_count_and_keeps_the_ends(steps, count, spacing):
    chosen = spread(steps, count, spacing)
    assert len(chosen) == min(count, len(steps))
    assert chosen == sorted(set(chosen)) and set(chosen) <= set(steps)
    assert chosen[0] == steps[0] and chosen[-1] == steps[-1]


def cost(chosen, spacing):
    """Sum of distances to the ideal positions, which is what the choice minimises."""
    position = (
        [math.log(s) for s in chosen if s > 0] if spacing == "log" else list(chosen)
    )
    n = len(position)
    if n < 2:
        return 0.0
    ideal = [position[0] + (position[-1] - position[0]) * k / (n - 1) for k in range(n)]
    return sum(abs(p - i) for p, i in zip(position, ideal, strict=True))


@settings(max_examples=60)
@given(
    step_lists.filter(lambda s: len(s) > 3),
    st.data(),
    st.sampled_from(["log", "linear"]),
)
def test_no_other_choice_is_nearer_to_even_spacing(steps, data, spacing):
    count = data.draw(st.integers(3, len(steps) - 1))
    chosen = spread(steps, count, spacing)
    inner = itertools.combinations(steps[1:-1], count - 2)
    # With step 0 apart, the log positions begin at the first positive step, which is kept.
    keep = (
        {s for s in steps[:2] if steps[0] == 0}
        if spacing == "log" and count > 2
        else set()
    )
    others = [(steps[0], *middle, steps[-1]) for middle in inner]
    rivals = [c for c in others if keep <= set(c)]
    assert cost(chosen, spacing) <= min(cost(c, spacing) for c in rivals) + 1e-9


def test_powers_of_two_are_already_log_spaced():
    steps = [0, *(2**k for k in range(13))]
    assert spread(steps, 8, "log") == [0, 1, 4, 16, 64, 256, 1024, 4096]
    assert spread(range(0, 1001, 10), 5, "linear") == [0, 250, 500, 750, 1000]


def test_start_and_stop_are_inclusive_and_combine_with_count():
    whole = trajectory(range(0, 1001, 100))
    assert list(whole.select(start=200, stop=500).steps) == [200, 300, 400, 500]
    assert list(whole.select(3, "linear", start=200, stop=600).steps) == [200, 400, 600]
    assert list(whole.select(steps=[700, 100, 100]).steps) == [100, 700]
    assert list(whole.select().steps) == list(whole.steps)
    assert whole.select(count=99)[300] is whole[300]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 1}, "count must be a whole number of at least 2"),
        ({"count": 2.5}, "count must be a whole number of at least 2"),
        ({"count": True}, "count must be a whole number of at least 2"),
        ({"spacing": "lin"}, "Did you mean 'linear'"),
        ({"count": 3, "steps": [0]}, "count or steps, not both"),
        ({"start": 101, "stop": 199}, "no checkpoint is left between 101 and 199"),
        ({"steps": []}, "no checkpoint is left"),
        ({"start": -1}, "start must be an integer, zero or more; got -1"),
        ({"stop": "200"}, "stop must be an integer, zero or more; got '200'"),
    ],
)
def test_impossible_selections_say_why(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        trajectory([0, 100, 200]).select(**arguments)
