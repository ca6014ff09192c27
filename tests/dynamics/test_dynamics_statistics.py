"""The permutation test, Holm's correction and the rolling mean against other ways to them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ontogeny.dynamics import (
    holm,
    order,
    rolling_mean,
    step_order_test,
    trend_test,
    trend_tests,
)
from ontogeny.dynamics.order import _by_spectrum, smallest_p
from ontogeny.errors import ArgumentError, NonFiniteError


def lagged_statistic(values: np.ndarray) -> float:
    """The definition, term by term."""
    count = len(values)
    return sum(
        np.mean((values[lag:] - values[:-lag]) ** 2) / lag
        for lag in range(1, count // 4 + 1)
    )


@pytest.mark.parametrize("count", [6, 7])
def test_few_steps_are_enumerated_exactly(count):
    values = np.random.default_rng(count).normal(size=count).cumsum()
    orders = [lagged_statistic(np.array(o)) for o in itertools.permutations(values)]
    expected = np.mean(np.array(orders) <= lagged_statistic(values) * (1 + 1e-9))
    # One order more is 2e-4 at least.
    assert step_order_test(values) == pytest.approx(expected)


@pytest.mark.parametrize("count", [129, 160, 333])
def test_many_steps_give_the_statistic_of_the_definition_by_the_spectrum(
    monkeypatch, count
):
    rng = np.random.default_rng(count)
    rows = np.stack(
        [np.linspace(0, 1, count), rng.normal(size=count) + 100, np.ones(count)]
    )
    orders = np.array([rng.permutation(count), np.arange(count)])
    expected = [[lagged_statistic(row[np.argsort(o)]) for row in rows] for o in orders]
    np.testing.assert_allclose(
        _by_spectrum(rows)(orders), expected, rtol=1e-9, atol=1e-10
    )
    p = step_order_test(rows, n_draws=199)
    assert p[0] < 0.001 and p[1] > 0.01 and p[2] == 1
    monkeypatch.setattr(order, "LONG", count)
    assert (step_order_test(rows, n_draws=199) == p).all()


@pytest.mark.parametrize("reference", [None, 30])
def test_shapes_over_many_steps_give_the_same_in_groups_as_whole(
    monkeypatch, reference
):
    count = 140
    rng, steps = np.random.default_rng(0), np.arange(count)
    slow = np.convolve(rng.normal(size=400), 0.9 ** np.arange(100))[100 : 100 + count]
    rise = 1 / (1 + np.exp((50 - steps) / 5)) + 0.02 * rng.normal(size=count)
    rows = np.stack([rise, slow, slow + steps / 10, rng.normal(size=count)])
    rows = rows if reference is None else np.abs(rows - rows[:, [reference]])
    p = trend_test(steps, rows, reference)
    monkeypatch.setattr(trend_tests, "LONG", count)
    whole = trend_test(steps, rows, reference)
    assert p.min() < 0.01 and len(np.unique(p)) > 2
    np.testing.assert_allclose(p, whole, rtol=1e-6)


def test_most_shapes_over_many_steps_are_multiplied_where_they_rise_alone():
    smooth, jumps, _ = trend_tests._shapes(600)
    numbers = sum(shapes.size for _, _, shapes in smooth)
    assert numbers < 0.4 * 600 * sum(len(shapes) for _, _, shapes in smooth)
    assert sum(shapes.size for _, _, shapes in jumps) < 600 * 64


def test_a_straight_line_and_its_reverse_are_the_two_smoothest_of_six():
    assert step_order_test(np.arange(6.0)) == pytest.approx(2 / 720)


def test_drawn_orders_agree_with_enumeration(monkeypatch):
    values = np.array([[0.0, 1, 3, 2, 5, 4, 7], [3.0, 1, 0, 2, 4, 1, 2]])
    exact = step_order_test(values)
    monkeypatch.setattr("ontogeny.dynamics.order.LARGEST_ENUMERATED", 5)
    drawn = step_order_test(values, n_draws=20_000)
    np.testing.assert_allclose(drawn, exact, atol=5 * np.sqrt(0.25 / 20_000))


def test_drawn_p_values_match_the_definition_permuted_by_hand():
    values = np.random.default_rng(5).normal(size=20) + np.linspace(0, 1, 20)
    rng = np.random.default_rng(1)
    by_hand = np.mean(
        [
            lagged_statistic(rng.permutation(values)) <= lagged_statistic(values)
            for _ in range(4000)
        ]
    )
    found = float(step_order_test(values, n_draws=20_000))
    assert found == pytest.approx(by_hand, abs=5 * np.sqrt(by_hand / 4000 + 1e-4))


def test_p_values_do_not_depend_on_location_scale_sign_or_direction():
    values = np.random.default_rng(2).normal(size=(4, 15)).cumsum(axis=1)
    p = step_order_test(values)
    np.testing.assert_array_equal(step_order_test(-3e7 * values + 5), p)
    np.testing.assert_allclose(step_order_test(values[:, ::-1]), p, atol=0.02)


def test_tiny_and_huge_values_neither_underflow_nor_overflow():
    values = np.random.default_rng(2).normal(size=(4, 15)).cumsum(axis=1)
    for scale in (1e-200, 1e200):
        np.testing.assert_array_equal(
            step_order_test(values * scale), step_order_test(values)
        )


def test_many_series_get_the_draws_that_a_correction_needs():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 20))
    values[0] = np.arange(20)
    p = holm(step_order_test(values, n_draws=99))
    assert p[0] <= 0.01 and np.all(p[1:] > 0.01)


def test_rows_with_other_missing_steps_are_tested_on_what_they_have():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 20)).cumsum(axis=1)
    values[0, :5] = values[1, [2, 7]] = np.nan
    together = step_order_test(values, n_draws=999, level=0.5)
    for row, p in zip(values, together, strict=True):
        assert step_order_test(row[~np.isnan(row)], n_draws=999, level=0.5) == p


def test_the_same_seed_gives_the_same_p_values_and_another_one_others():
    values = np.random.default_rng(0).normal(size=(5, 20))
    first = step_order_test(values, random_state=1)
    np.testing.assert_array_equal(first, step_order_test(values, random_state=1))
    assert np.any(first != step_order_test(values, random_state=2))


def test_infinite_values_are_refused():
    with pytest.raises(NonFiniteError, match="values holds 1 infinite"):
        step_order_test([1.0, np.inf])
    with pytest.raises(ArgumentError, match="values must have shape"):
        step_order_test(1.0)
    with pytest.raises(ArgumentError, match="values must have shape"):
        step_order_test([])
    with pytest.raises(ArgumentError, match="n_orders must be a whole number"):
        smallest_p(10, -1)


def test_holm_follows_the_step_down_procedure():
    # worked by hand: 4 tests, sorted .005 .01 .03 .04 times 4 3 2 1, then made monotone
    np.testing.assert_allclose(
        holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]
    )
    assert holm(np.full((2, 2), 0.4)).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(ArgumentError, match="p_values must lie between 0 and 1"):
        holm([0.5, 1.5])


def test_weights_of_holm_are_shares_of_the_level_one_for_each_test():
    corrected = holm([0.01, 0.04, np.nan], [2, 1, 5])  # 3/2, then 1 times
    np.testing.assert_allclose(corrected, [0.015, 0.04, np.nan])
    for weights in ([1.0], [0.0, 1.0], [-1.0, 2.0], [np.nan, 1.0]):
        with pytest.raises(ArgumentError, match="weights must be 2 numbers above 0"):
            holm([0.01, 0.02], weights)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_uncorrected_and_bonferroni_and_keeps_the_order(p_values):
    p = np.array(p_values)
    corrected = holm(p)
    assert np.all(corrected >= p) and np.all(
        corrected <= np.minimum(1, p * len(p)) + 1e-15
    )
    assert np.all(np.diff(corrected[np.argsort(p, kind="stable")]) >= 0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(0, 40))
def test_rolling_mean_equals_pandas_with_a_shrinking_window(values, half_window):
    window = 2 * half_window + 1
    expected = pd.Series(values).rolling(window, center=True, min_periods=1).mean()
    np.testing.assert_allclose(rolling_mean(values, half_window), expected, atol=1e-6)


def test_rolling_mean_does_not_cancel_after_a_huge_value():
    found = rolling_mean([1e16, 1.0, 2.0, 3.0, 4.0], 1)
    np.testing.assert_array_equal(found[2:], [2.0, 3.0, 3.5])


def test_rolling_mean_works_along_the_last_axis():
    values = np.random.default_rng(0).normal(size=(2, 3, 9))
    np.testing.assert_array_equal(
        rolling_mean(values, 2)[1, 2], rolling_mean(values[1, 2], 2)
    )
    np.testing.assert_array_equal(rolling_mean(values, 0), values)


def test_rolling_mean_refuses_what_it_cannot_average():
    with pytest.raises(ArgumentError, match="half_window must be 0 or more; got -1"):
        rolling_mean([1.0], -1)
    with pytest.raises(ArgumentError, match="its shape is"):
        rolling_mean([], 1)
    with pytest.raises(NonFiniteError, match="1 NaN"):
        rolling_mean([1.0, np.nan], 1)
