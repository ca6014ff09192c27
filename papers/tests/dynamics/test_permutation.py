"""Permutation tests against what is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny.concepts import CAV
from ontogeny.dynamics import permutation_test
from ontogeny.errors import ArgumentError
from ontogeny_papers.concepts.concept_directions import LabelledRows, fit_direction


@pytest.mark.parametrize(
    ("shuffled", "words"),
    [
        ([0.5, 0.4], "a last axis of at least one shuffle"),
        (np.zeros((1, 0)), "at least one shuffle"),
    ],
)
def test_bad_shuffles_are_refused(shuffled, words):
    with pytest.raises(ArgumentError, match=words):
        permutation_test([0.5], shuffled)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 30))
def test_p_values_are_ranks_and_corrections_never_smaller(seed, tests, draws):
    rng = np.random.default_rng(seed)
    observed, shuffled = rng.normal(size=tests), rng.normal(size=(tests, draws))
    found = permutation_test(observed, shuffled, centre=0.0)
    ranks = (np.abs(shuffled) >= np.abs(observed)[:, None]).sum(1)
    np.testing.assert_allclose(found.p_value, (1 + ranks) / (draws + 1))
    assert (found.p_corrected >= found.p_value - 1e-12).all()
    assert found.p_corrected.min() >= 1 / (draws + 1) - 1e-12
    if tests == 1:
        np.testing.assert_allclose(found.p_corrected, found.p_value)


def test_missing_tests_do_not_count():
    shuffled = np.random.default_rng(0).normal(size=(2, 99))
    observed = np.array([3.0, np.nan])
    found = permutation_test(observed, shuffled, centre=0.0)
    alone = permutation_test(observed[:1], shuffled[:1], centre=0.0)
    assert found.p_corrected[0] == alone.p_corrected[0] and np.isnan(
        found.p_corrected[1]
    )


def test_family_wise_errors_keep_their_level():
    """Sixty dependent tests without effect: any of them is called significant in 5 % at most."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        common = rng.normal(size=(1, 100))
        every = 0.7 * common + rng.normal(size=(60, 100)) * rng.uniform(
            0.1, 3, size=(60, 1)
        )
        wrong += (
            permutation_test(every[:, 0], every[:, 1:], 0.0).p_corrected.min() <= 0.05
        )
    assert wrong / 400 <= 0.06


@pytest.mark.parametrize(
    ("solver", "repeats"), [("lbfgs", 150), ("mean-difference", 1000)]
)
def test_random_labels_are_significant_in_at_most_six_percent(solver, repeats):
    """Score and accuracy of directions of labels that mean nothing, against shuffled labels.

    The gradients share a common part, as those of language models do: most random directions then
    score near 0 or 1, and a test of the score against 1/2 would call nearly all significant.
    """
    rng = np.random.default_rng(0)
    wrong = {"score": 0, "accuracy": 0, "against one half": 0}
    for repeat in range(repeats):
        A = rng.normal(size=(88, 5))
        gradients = rng.normal(size=(40, 5)) + 2 * rng.normal(size=5)
        positive = np.append(rng.permutation(48) % 2, rng.permutation(40) % 2) == 1
        rows = LabelledRows(np.arange(88), positive, np.arange(48), np.arange(48, 88))
        found = fit_direction(A, rows, CAV(solver=solver), 39, 1, random_state=repeat)
        scores = (gradients @ found.stacked() > 0).mean(0)
        own, random = scores[0], scores[2:]
        wrong["score"] += permutation_test(own, random, 0.5).p_value <= 0.05
        p = permutation_test(
            found.accuracy, found.random_accuracy, alternative="greater"
        ).p_value
        wrong["accuracy"] += p <= 0.05
        wrong["against one half"] += abs(own - 0.5) > 1.96 * np.sqrt(0.25 / 40)
    assert wrong["score"] / repeats <= 0.06
    assert wrong["accuracy"] / repeats <= 0.06
    assert wrong["against one half"] / repeats > 0.4


def test_a_planted_direction_is_significant():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    A = rng.normal(size=(200, 10))
    A[:, 0] += 2 * y - 1
    gradients = rng.normal(size=(100, 10)) + 2 * np.eye(10)[0]
    rows = LabelledRows(np.arange(200), y == 1, np.arange(120), np.arange(120, 200))
    found = fit_direction(A, rows, CAV(), 199, 5)
    scores = (gradients @ found.stacked() > 0).mean(0)
    assert permutation_test(scores[0], scores[6:], 0.5).p_value <= 0.05
    accuracy = permutation_test(
        found.accuracy, found.random_accuracy, alternative="greater"
    )
    assert accuracy.p_value == 1 / 200 and found.cosines.min() > 0.9
