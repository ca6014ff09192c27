"""The marker task against plain recomputation, enumeration and exact distributions."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny.errors import ArgumentError
from ontogeny_papers.reproduce.tasks import MarkerStream, MarkerTask


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def recomputed(task, row):
    """Read markers, values and label off one row of tokens, in plain Python."""
    places = [p for p, token in enumerate(row) if token in task.marker_ids]
    values = [row[p + 1] for p in places]
    if task.operation == "addition":
        return places, values, sum(values) % task.modulus
    return places, values, int(np.prod(values, dtype=object)) % task.modulus


@settings(max_examples=40)
@given(
    length=st.integers(4, 24),
    modulus=st.integers(2, 17),
    data=st.data(),
    operation=st.sampled_from(["addition", "multiplication"]),
    distractors=st.sampled_from(["others", "values"]),
    distinct=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_labels_counts_and_positions_are_what_the_tokens_say(
    length, modulus, data, operation, distractors, distinct, seed
):
    markers = data.draw(st.sets(st.integers(1, min(6, length // 2)), min_size=1))
    task = MarkerTask(
        length=length,
        modulus=modulus,
        markers=tuple(markers),
        vocab_size=modulus + 10,
        operation=operation,
        distractors=distractors,
        distinct_markers=distinct,
    )
    batch = task.sample(50, generator(seed))
    assert batch.ids.shape == (50, length)
    assert bool(((batch.ids >= 0) & (batch.ids < task.vocab_size)).all())
    for row, label, count, positions in zip(
        *(each.tolist() for each in batch), strict=True
    ):
        places, values, answer = recomputed(task, row)
        assert len(places) == count and count in markers
        assert [p for p in positions if p >= 0] == places
        assert answer == label
        assert all(0 <= value < modulus for value in values)
        assert all(b - a >= 2 for a, b in itertools.pairwise(places))
        if distinct:
            assert [row[p] for p in places] == list(task.marker_ids[:count])
        others = set(range(length)) - set(places) - {p + 1 for p in places}
        if distractors == "others":
            assert all(row[p] >= modulus + len(task.marker_ids) for p in others)
        else:
            assert not any(row[p] in task.marker_ids for p in others)


@pytest.mark.parametrize(("length", "m"), [(6, 2), (8, 3), (7, 1)])
def test_every_placement_is_equally_likely(length, m):
    task = MarkerTask(length=length, markers=m)
    allowed = [
        places
        for places in itertools.combinations(range(length - 1), m)
        if all(b - a >= 2 for a, b in itertools.pairwise(places))
    ]
    assert len(allowed) == task.placements(m)
    n = 2000 * len(allowed)
    drawn = Counter(map(tuple, task.sample(n, generator()).positions.tolist()))
    assert set(drawn) == set(allowed)
    expected = n / len(allowed)
    statistic = sum((drawn[places] - expected) ** 2 / expected for places in allowed)
    assert statistic < len(allowed) + 5 * np.sqrt(2 * len(allowed))  # chi-square, 5 sd


def test_mixed_counts_do_not_disturb_the_placements():
    task = MarkerTask(length=6, markers=(1, 2, 3))
    batch = task.sample(60_000, generator())
    shares = np.bincount(batch.markers.numpy(), minlength=4)[1:] / 60_000
    assert np.abs(shares - 1 / 3).max() < 0.01
    two = batch.positions[batch.markers == 2][:, :2]
    drawn = Counter(map(tuple, two.tolist()))
    assert len(drawn) == task.placements(2) == 6
    assert max(drawn.values()) / min(drawn.values()) < 1.1


@pytest.mark.parametrize("operation", ["addition", "multiplication"])
@pytest.mark.parametrize("modulus", [7, 8])
def test_the_label_distribution_is_that_of_enumeration(operation, modulus):
    task = MarkerTask(modulus=modulus, operation=operation)
    combine = sum if operation == "addition" else np.prod
    answers = [
        combine(v) % modulus for v in itertools.product(range(modulus), repeat=3)
    ]
    exact = np.bincount(answers, minlength=modulus) / modulus**3
    np.testing.assert_allclose(task.label_distribution(3), exact, atol=1e-15)


def test_products_of_many_large_values_do_not_overflow():
    task = MarkerTask(
        length=60, modulus=9973, markers=30, vocab_size=9980, operation="multiplication"
    )
    batch = task.sample(20, generator())
    for row, label in zip(batch.ids.tolist(), batch.labels.tolist(), strict=True):
        assert recomputed(task, row)[2] == label


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"length": 10, "markers": 6}, "markers=6 .* need 12 tokens, but length is 10"),
        ({"vocab_size": 9}, "vocab_size must be at least 10"),
        (
            {"vocab_size": 12, "distinct_markers": True},
            "vocab_size must be at least 13",
        ),
        ({"operation": "adition"}, "Did you mean 'addition'"),
        ({"distractors": "none"}, "distractors must be one of"),
        ({"markers": ()}, "at least one"),
        ({"markers": (2, 2)}, "must differ"),
        ({"markers": 0}, "at least 1; got 0"),
        ({"modulus": 1}, "modulus must be a whole number of at least 2"),
        ({"length": 16.0}, "length must be a whole number"),
    ],
)
def test_impossible_settings_are_refused_with_numbers(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        MarkerTask(**arguments)


def test_values_as_distractors_leave_only_the_markers_to_tell():
    task = MarkerTask(distractors="values", markers=1)
    batch = task.sample(4000, generator())
    values = (batch.ids < task.modulus).sum(1).float().mean()
    # one marked value and 14 distractors, each a value with probability 8 / 23
    assert abs(float(values) - (1 + 14 * 8 / 23)) < 0.15


def test_a_full_sequence_needs_no_distractor():
    batch = MarkerTask(length=4, markers=2, vocab_size=9).sample(3, generator())
    assert batch.positions.tolist() == [[0, 2]] * 3


def test_places_without_a_token_for_distractors_are_refused_rather_than_filled_with_values():
    task = MarkerTask(length=8, modulus=5, markers=4, vocab_size=6)
    with pytest.raises(ArgumentError, match="no token for them"):
        task.sample(3, generator(), markers=2)


def test_batches_are_reached_by_step_and_differ():
    one, again = MarkerStream(MarkerTask(), 8, 3), MarkerStream(MarkerTask(), 8, 3)
    for step in (0, 63, 64, 200):
        assert torch.equal(one(step).ids, again(step).ids)
    again(500)
    assert torch.equal(one(70).ids, again(70).ids)
    seen = {one(step).ids.numpy().tobytes() for step in range(130)}
    other = {
        MarkerStream(MarkerTask(), 8, 4)(step).ids.numpy().tobytes()
        for step in range(3)
    }
    assert len(seen) == 130 and not seen & other


def test_a_curriculum_shows_one_number_of_markers_at_a_time():
    stream = MarkerStream(MarkerTask(), 16, curriculum=[(5, 1), (70, 2), (3, (3, 4))])
    for step, expected in (
        (0, {1}),
        (4, {1}),
        (5, {2}),
        (74, {2}),
        (75, {3, 4}),
        (900, {3, 4}),
    ):
        assert set(stream(step).markers.tolist()) == expected


def test_evaluation_inputs_hold_labels_and_are_not_training_batches():
    task = MarkerTask()
    inputs = task.inputs(200, random_state=3, markers=2)
    rows = {tuple(row) for row in inputs.ids.tolist()}
    assert all(
        recomputed(task, list(row))[2] == label
        for row, label in zip(inputs.ids.tolist(), inputs.labels.tolist(), strict=True)
    )
    stream = MarkerStream(task, 64, 3)
    trained = {tuple(row) for step in range(64) for row in stream(step).ids.tolist()}
    assert not rows & trained
