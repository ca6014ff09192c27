"""Progress, half-change steps, floors, references: what `development` says of known series."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny.dynamics import development, half_change_step, trend_test
from ontogeny.errors import ArgumentError, NonFiniteError

STEPS = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000])


def decay(half_step: float) -> np.ndarray:
    """Half of the change that is still to come at infinity is done at `half_step`."""
    return 1 / (1 + STEPS / half_step)


def test_progress_runs_from_zero_to_one_and_half_step_matches_the_closed_form():
    found = development(STEPS, STEPS / 1000)
    np.testing.assert_allclose(found.progress, STEPS / 1000)
    # between 256 (.256) and 512 (.512): linear in progress over log(step)
    expected = 256 * 2 ** ((0.5 - 0.256) / (0.512 - 0.256))
    assert found.half_step == pytest.approx(expected)
    # without a floor, only the spacing of the checkpoints is left
    assert (found.half_step_low, found.half_step_high) == (256, 512)
    assert (found.first, found.last) == (0.0, 1.0)
    assert found.changed and found.change == 1.0


def test_half_step_between_step_zero_and_the_next_is_linear_in_the_step():
    assert half_change_step([0, 10, 100], [0.0, 1.0, 1.0]) == 5.0


def test_half_step_is_unchanged_by_units_of_steps_and_values():
    found = development(STEPS, decay(20.0))
    other = development(STEPS * 7, 3 - 1e6 * decay(20.0))
    assert other.half_step == pytest.approx(7 * found.half_step)
    np.testing.assert_allclose(other.progress, found.progress, atol=1e-9)
    assert other.p_uncorrected == pytest.approx(float(found.p_uncorrected), rel=1e-6)


def test_interval_widens_with_the_floor_and_holds_the_half_step():
    previous = (np.inf, 0.0)
    for floor in (0.0, 0.05, 0.1, 0.2, 0.4):
        found = development(STEPS, decay(20.0), floor)
        assert found.half_step_low <= found.half_step <= found.half_step_high
        assert (
            found.half_step_low <= previous[0] and found.half_step_high >= previous[1]
        )
        previous = (float(found.half_step_low), float(found.half_step_high))
    assert previous[0] < found.half_step < previous[1]


def test_a_step_with_an_unknown_floor_widens_the_interval_over_it_and_no_more():
    floor = np.zeros(12)
    floor[5:8] = np.finfo(float).max
    found = development(STEPS, decay(20.0), floor)
    assert found.half_step_low == pytest.approx(8, rel=0.01)
    assert 16 < found.half_step < 32
    assert found.half_step_high == pytest.approx(128, rel=0.01)


def test_unknown_noise_is_never_read_as_zero():
    found = development(STEPS, decay(20.0), np.nan)
    assert not found.noise_known and not found.changed and not found.distinct.any()
    assert not found.judgeable and not found.moved
    assert found.p_value < 0.01 and found.change == pytest.approx(decay(20.0)[-1] - 1)
    for step in (
        found.half_step,
        found.half_step_low,
        found.half_step_high,
        found.settled_step,
    ):
        assert np.isnan(step)


def test_unknown_noise_at_the_last_usable_step_leaves_no_verdict():
    values, floor = decay(20.0), np.full(12, 0.05)
    floor[10] = np.nan
    assert development(STEPS, values, floor).changed
    values[11] = np.nan
    found = development(STEPS, values, floor)
    assert not found.noise_known and not found.changed and np.isnan(found.settled_step)


def test_unknown_noise_between_the_ends_leaves_the_interval_open():
    known = development(STEPS, decay(20.0), 0.05)
    floor = np.full(12, 0.05)
    floor[0] = np.nan
    first = development(STEPS, decay(20.0), floor)
    assert first.half_step_low == known.half_step_low
    assert first.half_step_high == known.half_step_high
    floor[5] = np.nan
    found = development(STEPS, decay(20.0), floor)
    assert found.noise_known and found.changed and found.half_step == known.half_step
    assert np.isnan(found.half_step_low) and np.isnan(found.half_step_high)
    assert known.distinct[5] and not found.distinct[5]


def test_unknown_noise_of_a_missing_step_changes_nothing():
    values, floor = decay(20.0), np.full(12, 0.05)
    values[5] = floor[5] = np.nan
    found, known = development(STEPS, values, floor), development(STEPS, values, 0.05)
    for name in (
        "half_step_low",
        "half_step_high",
        "settled_step",
        "changed",
        "noise_known",
    ):
        np.testing.assert_array_equal(getattr(found, name), getattr(known, name))


def test_settled_step_is_given_only_where_known_floors_decide_it():
    values = np.array([5.0, 5, 5, 4.8, 4, 3, 2, 1.1, 1.05, 1.0, 0.95, 1.0])
    for unknown, settled in ((3, 64), (6, np.nan), (8, np.nan), (11, np.nan)):
        floor = np.full(12, 0.15)
        floor[unknown] = np.nan
        np.testing.assert_equal(
            float(development(STEPS, values, floor).settled_step), settled
        )


def test_unknown_noise_of_one_series_leaves_the_others_alone():
    found = development(STEPS, np.stack([decay(20.0), decay(5.0)]), [0.05, np.nan])
    assert found.noise_known.tolist() == found.changed.tolist() == [True, False]


def test_interval_spans_all_crossings_of_one_half():
    back_and_forth = np.array(
        [0, 0.1, 0.2, 0.3, 0.7, 0.8, 0.3, 0.2, 0.7, 0.9, 1.0, 1.0]
    )
    found = development(STEPS, back_and_forth, n_draws=999, level=0.2)
    assert 4 < found.half_step < 8
    assert (found.half_step_low, found.half_step_high) == (4, 128)


def test_distinct_and_settled_steps_are_where_the_floor_says():
    values = np.array([5.0, 5, 5, 4.8, 4, 3, 2, 1.1, 1.05, 1.0, 0.95, 1.0])
    found = development(STEPS, values, floor=0.15)
    assert list(STEPS[found.distinct]) == [4, 8, 16, 32, 64, 128, 256, 512, 1000]
    assert found.settled_step == 64
    at_each_step = np.where(STEPS < 100, 1.5, 0.01)
    varying = development(STEPS, values, floor=at_each_step)
    assert list(STEPS[varying.distinct]) == [16, 32, 64, 128, 256, 512, 1000]
    assert np.isnan(varying.settled_step)


def test_settling_asks_for_the_noise_of_a_change_to_the_last_value():
    values = np.array([5.0, 5, 5, 4.8, 4, 3, 2, 1.1, 1.05, 1.0, 0.95, 1.0])
    found = development(STEPS, values, floor=0.15, floor_to_last=0.06)
    assert found.settled_step == 128
    np.testing.assert_array_equal(
        found.distinct, development(STEPS, values, floor=0.15).distinct
    )
    with pytest.raises(
        ArgumentError, match="floor_to_last must be one number, or one for each"
    ):
        development(STEPS, values, floor=0.15, floor_to_last=[0.1, 0.2])
    with pytest.raises(NonFiniteError, match="floor_to_last holds 1 infinite"):
        development(STEPS, values, floor=0.15, floor_to_last=np.inf)


def test_a_series_that_only_the_last_step_settles_never_settled():
    assert np.isnan(development(STEPS, np.arange(12.0), floor=0.5).settled_step)


def test_distance_to_the_last_checkpoint_develops_and_ends_at_one():
    values = np.append(decay(20.0)[:-1], 0.0)
    found = development(STEPS, values, reference_index=11)
    assert found.changed
    assert found.progress[0] == 0.0 and found.progress[-2] == found.progress[-1] == 1.0
    assert found.change == pytest.approx(values[10] - values[0])
    assert found.distinct[-1]


def test_distance_to_the_first_checkpoint_starts_at_the_second():
    values = np.append(0.0, 1 - decay(20.0)[1:])
    found = development(STEPS, values, reference_index=0)
    assert found.changed
    assert found.progress[0] == found.progress[1] == 0.0 and found.progress[-1] == 1.0
    assert not found.distinct[0]


def test_distances_to_the_reference_are_zero_there_or_left_out():
    values = decay(20.0)
    zero, missing = (
        development(
            STEPS, np.where(np.arange(12) == 5, there, values), reference_index=5
        )
        for there in (0.0, np.nan)
    )
    np.testing.assert_array_equal(zero.progress, missing.progress)
    assert zero.p_value == missing.p_value and zero.half_step == missing.half_step
    assert zero.progress[5] == zero.progress[4]


def test_similarity_is_judged_by_how_far_it_is_from_that_at_the_reference():
    values = np.append(0.7 - 0.5 * decay(20.0)[:-1], 1.0)
    p = [trend_test(STEPS, rows, 11) for rows in (values, 3 * values, -values)]
    np.testing.assert_allclose(p, p[0], rtol=1e-6)


def test_a_row_that_only_the_memory_of_the_reference_explains_is_not_judged():
    points = np.random.default_rng(0).normal(size=(16, 2000)).cumsum(axis=0)
    walk = np.linalg.norm(points - points[-1], axis=1)
    found = development(np.arange(16), walk, 0.01, reference_index=15)
    assert found.moved and not found.changed
    assert found.only_memory and not found.judgeable
    assert found.half_step_low < found.half_step < found.half_step_high
    plain = development(np.arange(15), walk[:-1], 0.01)
    assert plain.changed and plain.judgeable


def test_too_few_checkpoints_for_the_tests_are_not_judged():
    values = np.tile(np.arange(7.0), (4, 1))
    found = development(np.arange(7), values)
    assert found.judgeable.all() and found.smallest_p == pytest.approx(2 / 5040)
    found = development(np.arange(7), values, n_tests=26)
    assert found.moved.all() and not found.judgeable.any()
    assert development(np.arange(9), np.arange(9.0), n_tests=1000).judgeable


def test_rounding_noise_is_no_development_even_with_a_trend():
    rng = np.random.default_rng(0)
    trend = 1 + 1e-7 * np.linspace(0, 1, 30)
    jitter = 1 + 1e-7 * rng.normal(size=(20, 30))
    found = development(np.arange(30), np.vstack([trend, jitter]))
    assert found.p_value[0] < 0.01  # the order is visible, the change is not measurable
    assert not found.changed.any() and not found.distinct.any()
    assert np.isnan(found.progress).all() and np.isnan(found.half_step).all()


def test_scale_says_what_small_distances_were_computed_from():
    values = 1e-7 * np.linspace(0, 1, 30)
    assert development(np.arange(30), values).changed
    assert not development(np.arange(30), values, scale=1.0).changed


def test_change_within_the_floor_is_no_development():
    values = np.linspace(0, 1, 30)
    assert development(np.arange(30), values, floor=0.9).changed
    assert not development(np.arange(30), values, floor=1.1).changed


def test_a_bump_is_seen_in_the_p_value_but_is_no_change_from_first_to_last():
    x = np.linspace(-3, 3, 40)
    found = development(np.arange(40), np.exp(-(x**2)), floor=0.1)
    assert found.p_value < 0.001 and not found.changed and np.isnan(found.half_step)


def test_missing_steps_are_left_out():
    values = decay(20.0)
    values[[0, 4, 11]] = np.nan
    kept = [1, 2, 3, 5, 6, 7, 8, 9, 10]
    found = development(STEPS, values)
    whole = development(STEPS[kept], values[kept])
    np.testing.assert_array_equal(found.progress[kept], whole.progress)
    assert (
        np.isnan(found.progress[[0, 4, 11]]).all()
        and not found.distinct[[0, 4, 11]].any()
    )
    assert found.half_step == whole.half_step and found.change == whole.change


@pytest.mark.parametrize("count", [1, 2, 5])
def test_too_few_steps_are_not_judged(count):
    found = development(STEPS[:count], STEPS[:count] * 1.0)
    assert np.isnan(found.p_value) and not found.changed and not found.judgeable
    assert found.moved == (count > 1) and np.isnan(found.half_step) == (count == 1)
    assert found.change == STEPS[count - 1]


def test_a_series_without_any_value_is_not_judged():
    found = development(STEPS, np.full((2, 12), np.nan), reference_index=3)
    assert np.isnan(found.p_value).all() and np.isnan(found.change).all()
    assert not found.changed.any() and not found.distinct.any()


def test_a_constant_series_did_not_develop():
    found = development(STEPS, np.full(12, 3.0))
    assert found.p_value == 1.0 and not found.changed and not found.distinct.any()


def test_batches_keep_their_shape_and_their_rows():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 3, 12)).cumsum(axis=-1)
    floor = rng.uniform(0.1, 1, size=(2, 3))
    found = development(STEPS, values, floor)
    assert found.progress.shape == found.distinct.shape == (2, 3, 12)
    one = development(STEPS, values[1, 2], floor[1, 2])
    np.testing.assert_array_equal(found.progress[1, 2], one.progress)
    assert found.settled_step[1, 2] == one.settled_step or np.isnan(one.settled_step)
    assert found.p_value.shape == found.changed.shape == (2, 3)
    assert found.p_value[1, 2] >= one.p_value


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=12),
    st.floats(0, 10),
    st.integers(0, 3),
)
@settings(max_examples=30)
def test_whatever_comes_the_results_hold_together(values, floor, reference):
    steps = np.arange(len(values))
    found = development(steps, values, floor, reference_index=reference, n_draws=99)
    assert found.moved or not found.changed
    if found.moved:
        assert (
            0
            <= found.half_step_low
            <= found.half_step
            <= found.half_step_high
            <= steps[-1]
        )
        assert found.progress[-1] == pytest.approx(1.0)
        assert abs(found.change) > floor
    else:
        assert np.isnan(found.half_step)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"steps": [0, 2, 1]}, ArgumentError, "steps must increase"),
        ({"steps": [-1, 0, 1]}, ArgumentError, "steps must increase"),
        (
            {"values": [1.0, 2.0]},
            ArgumentError,
            r"values must have shape \(\.\.\., 3\)",
        ),
        ({"values": [1.0, np.inf, 2.0]}, NonFiniteError, "values holds 1 infinite"),
        ({"floor": -0.1}, ArgumentError, "floor must not be negative"),
        ({"floor": "low"}, ArgumentError, "floor must be an array of numbers"),
        ({"floor": np.inf}, NonFiniteError, "floor holds 1 infinite"),
        ({"scale": np.nan}, NonFiniteError, "scale holds 1 NaN"),
        ({"floor": [1.0, 2.0]}, ArgumentError, "floor must be one number"),
        ({"scale": -1.0}, ArgumentError, "scale must not be negative"),
        (
            {"reference_index": 3},
            ArgumentError,
            "reference_index must be a whole .* most 2",
        ),
        ({"reference_index": 1.5}, ArgumentError, "reference_index must be a whole"),
        (
            {"level": 1.5},
            ArgumentError,
            "level must be a finite number above 0 and below 1",
        ),
        ({"n_draws": 0}, ArgumentError, "n_draws must be a whole"),
        ({"n_tests": 0}, ArgumentError, "n_tests must be a whole"),
    ],
)
def test_bad_input_is_named(change, error, words):
    arguments = {"steps": [0, 1, 2], "values": [1.0, 2.0, 3.0], **change}
    with pytest.raises(error, match=words):
        development(**arguments)


def test_the_input_is_left_as_it_was():
    values = np.arange(12.0)
    development(STEPS, values, reference_index=11)
    np.testing.assert_array_equal(values, np.arange(12.0))
