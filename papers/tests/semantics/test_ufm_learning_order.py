"""When a level is reached, and whether larger singular values come first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ontogeny.errors import ArgumentError
from ontogeny.semantics import (
    first_crossing,
    leading_directions,
    learning_order,
    subspace_overlap,
)

TENTHS = st.integers(0, 10).map(lambda n: n / 10)
LEVELS = st.integers(0, 9).map(lambda n: n / 10 + 0.05)


@given(st.lists(TENTHS, min_size=2, max_size=12), LEVELS)
def test_crossings_lie_where_the_straight_lines_reach_the_level(values, level):
    steps = np.arange(len(values)) ** 2.0
    found = float(first_crossing(steps, values, level))
    if max(values) < level:
        assert np.isnan(found)
        return
    fine = np.linspace(0, steps[-1], 4001)
    reached = fine[np.interp(fine, steps, values) >= level - 1e-12]
    assert found <= reached[0] + 1e-9
    assert np.interp(found, steps, values) == pytest.approx(level) or found == 0


@given(st.lists(TENTHS, min_size=2, max_size=12), LEVELS)
def test_lasting_crossings_are_never_undercut_later(values, level):
    steps = np.arange(float(len(values)))
    found = float(first_crossing(steps, values, level, lasting=True))
    if values[-1] < level:
        assert np.isnan(found)
    else:
        later = steps[steps >= found]
        assert (np.array(values)[steps >= found] >= level - 1e-12).all() and len(later)


def test_missing_steps_are_left_out():
    assert float(first_crossing([0, 1, 2, 3], [0, np.nan, np.nan, 3.0], 1.5)) == 1.5
    assert np.isnan(first_crossing([0, 1], [np.nan, np.nan], 0.5))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (([0, 0], [1, 2], 1), "increase"),
        (([0, 1], [1, 2, 3], 1), "values"),
        (([0, 1], [[1, 2]], [1, 2]), "level"),
    ],
)
def test_crossings_refuse_what_does_not_fit(arguments, word):
    with pytest.raises(ArgumentError, match=word):
        first_crossing(*arguments)


@given(st.lists(st.integers(0, 9), min_size=4, max_size=15), st.integers(0, 99))
def test_order_is_spearmans_correlation_with_the_early_first(sigma, seed):
    steps = np.random.default_rng(seed).integers(0, 5, len(sigma)).astype(float)
    found = learning_order(np.array(sigma, float), steps, n_draws=9)
    if len(set(sigma)) == 1 or len(set(steps)) == 1:
        assert np.isnan(found.spearman)
    else:
        assert found.spearman == pytest.approx(
            spearmanr(sigma, -steps).statistic, abs=1e-9
        )


def test_what_is_never_learned_counts_as_last():
    late = learning_order([4.0, 3, 2, 1], [1, 2, 900, 900])
    never = learning_order([4.0, 3, 2, 1], [1, 2, np.nan, np.nan])
    assert never.spearman == late.spearman and never.learned == 2


def test_p_values_of_random_orders_are_uniform():
    rng = np.random.default_rng(0)
    p = [
        learning_order(
            np.arange(12.0), rng.permutation(12), n_draws=199, random_state=i
        ).p_value
        for i in range(300)
    ]
    # 15 expected of 300; 27 has probability 0.2 %.
    assert np.mean(np.array(p) <= 0.05) < 0.09
    assert 0.4 < np.mean(p) < 0.6


def test_overlap_is_that_of_the_projections_and_random_ones_give_k_over_v():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((40, 7)), rng.standard_normal((40, 90))
    U, Q = leading_directions(A, 5), leading_directions(B, 5)
    found = subspace_overlap(U, Q, [1, 3, 5])
    for k, value in zip([1, 3, 5], found, strict=True):
        P, R = U[:, :k] @ U[:, :k].T, Q[:, :k] @ Q[:, :k].T
        assert value == pytest.approx(np.trace(P @ R) / k)
    draws = [
        subspace_overlap(U, leading_directions(rng.standard_normal((40, 50)), 5), [5])[
            0
        ]
        for _ in range(200)
    ]
    assert np.mean(draws) == pytest.approx(5 / 39, rel=0.1)


def test_directions_ignore_a_constant_for_each_column_and_agree_for_tall_and_wide():
    rng = np.random.default_rng(1)
    M = rng.standard_normal((9, 30))
    moved = M + rng.standard_normal(30)
    U = leading_directions(M, 3)
    assert subspace_overlap(
        U, leading_directions(moved, 3), [1, 2, 3]
    ) == pytest.approx([1, 1, 1])
    svd = np.linalg.svd(M - M.mean(axis=0))[0][:, :3]
    assert subspace_overlap(U, svd, [1, 2, 3]) == pytest.approx([1, 1, 1])
    with pytest.raises(ArgumentError, match="k must"):
        leading_directions(M, 10)
