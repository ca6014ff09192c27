"""The map from one checkpoint to the next, and what was observed of learning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from ontogeny.dynamics import learning_progress, recurrence
from ontogeny.errors import ArgumentError, NonFiniteError


def orbit(slope, intercept, noise, count, seed=0, start=1.0):
    rng = np.random.default_rng(seed)
    values = [start]
    for _ in range(count - 1):
        values.append(intercept + slope * values[-1] + noise * rng.normal())
    return np.array(values)


@given(st.floats(0.1, 0.95), st.floats(-2, 2))
def test_an_exact_map_comes_back(slope, intercept):
    m = orbit(slope, intercept, 0.0, 12, start=5.0)
    found = recurrence(m)
    assert found.slope == pytest.approx(slope, rel=1e-6)
    assert found.fixed_point == pytest.approx(
        intercept / (1 - slope), rel=1e-4, abs=1e-6
    )
    assert found.noise == pytest.approx(0.0, abs=1e-6) and found.r2 == pytest.approx(
        1.0
    )


def test_the_map_is_the_least_squares_line_with_its_errors():
    m = orbit(0.7, 0.2, 0.05, 60)
    found, line = recurrence(m), linregress(m[:-1], m[1:])
    assert (found.slope, found.intercept) == pytest.approx((line.slope, line.intercept))
    assert found.slope_stderr == pytest.approx(line.stderr)
    assert found.intercept_stderr == pytest.approx(line.intercept_stderr)
    assert found.r2 == pytest.approx(line.rvalue**2)
    assert found.noise == pytest.approx(0.05, rel=0.3)


def test_random_walks_rarely_show_a_fixed_point():
    found = [
        recurrence(orbit(1.0, 0.0, 1.0, 30, seed=s)).fixed_point for s in range(300)
    ]
    # 5 % of 300 is 15 (sd 3.8)
    assert np.isfinite(found).sum() < 30


def test_the_slope_is_as_much_too_small_as_said():
    slopes = [
        recurrence(orbit(0.6, 0, 1.0, 31, seed=s, start=0.0)).slope for s in range(400)
    ]
    assert 0.6 - np.mean(slopes) == pytest.approx((1 + 3 * 0.6) / 30, abs=0.03)


def test_a_bent_map_is_told_from_a_straight_one():
    bent = [1.0]
    for _ in range(30):
        bent.append(bent[-1] / (1 + bent[-1] ** 2))
    assert recurrence(bent).linear_p < 0.05
    assert recurrence(orbit(0.9, 0.0, 0.01, 40, seed=1)).linear_p > 0.05


def test_uneven_steps_use_the_longest_even_stretch():
    steps = np.concatenate([[0, 1, 2, 4, 8, 16], 16 + 40 * np.arange(1, 15)])
    values = np.concatenate([[9.0, 3, 7, 1, 5], orbit(0.8, 0.1, 0.0, 15)])
    found = recurrence(values, steps)
    assert found.even and found.every == (40, 40) and found.n == 14
    assert found.slope == pytest.approx(0.8)
    logged = recurrence(values[:9], 2.0 ** np.arange(9))
    assert not logged.even and logged.every == (1, 128) and logged.n == 8


def test_pairs_across_a_gap_are_left_out():
    m = orbit(0.8, 0.1, 0.0, 20)
    m[10] = np.nan
    found = recurrence(m)
    assert found.slope == pytest.approx(0.8) and found.n == 9
    assert recurrence(orbit(0.8, 0.1, 0.0, 20), reference_index=19).n == 18


def test_too_little_is_said_not_raised():
    assert "too few" in recurrence([1.0, 2.0, 3.0]).reason
    assert recurrence(np.ones(20)).reason == "the series is constant"


def test_progress_is_below_the_first_value_for_good():
    steps = np.arange(6) * 10
    found = learning_progress(steps, [1, 0.5, 1.2, 0.7, 0.6, 0.6])
    assert found.progressed and found.since == 30
    back = learning_progress(steps, [1, 0.5, 0.4, 0.3, 0.2, 1.1])
    assert not back.progressed and np.isnan(back.since)
    assert back.sentences[0] == "Not for good below its first value up to step 50."


def test_progress_within_the_noise_is_none():
    assert not learning_progress(
        np.arange(4), [1.0, 0.97, 0.96, 0.95], noise=0.1
    ).progressed


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=30))
def test_the_bound_holds_and_is_reached(values):
    found = learning_progress(np.arange(len(values)), values)
    changes = np.abs(np.diff(values))
    assert found.bound == changes.max() and found.late_bound <= found.bound
    assert changes[int(found.bound_step) - 1] == found.bound


def test_convergence_needs_changes_that_stop():
    steps = np.arange(40.0)
    fall = np.exp(-steps / 4)
    found = learning_progress(steps, fall, noise=0.01)
    assert found.converged
    quiet = steps >= found.quiet_since
    assert np.abs(np.diff(fall))[quiet[:-1]].max() <= 0.01
    assert not learning_progress(steps, fall, noise=0.0).converged  # it still moves
    assert not learning_progress(steps, 1 - steps / 40, noise=0.01).converged
    still = learning_progress(steps, np.full(40, 2.0), noise=0.01)
    assert still.never_moved and not still.converged and not still.progressed


def test_a_slow_drift_within_the_noise_is_quiet_but_no_proof():
    # 1/t: changes vanish, the sum of them does not
    steps = np.arange(1.0, 200.0)
    found = learning_progress(steps, -np.log(steps), noise=0.05)
    assert found.converged
    assert "stayed within the noise" in found.sentences[2]


def test_the_reference_is_left_out():
    found = learning_progress(np.arange(5), [1, 0.9, 0.8, 0.7, 0.0], reference_index=4)
    assert found.bound == pytest.approx(0.1) and found.last_step == 3


@pytest.mark.parametrize(
    ("values", "options", "error", "words"),
    [
        ([1.0, 2.0], {}, ArgumentError, "3 values"),
        ([[1.0, 2.0, 3.0]], {}, ArgumentError, "one series"),
        ([1.0, np.inf, 2.0], {}, NonFiniteError, "infinite"),
        ([1.0, 2.0, 3.0], {"noise": -1}, ArgumentError, "negative"),
    ],
)
def test_bad_input_is_named(values, options, error, words):
    with pytest.raises(error, match=words):
        learning_progress(np.arange(np.shape(values)[-1]), values, **options)


def test_a_table_is_no_series():
    with pytest.raises(ArgumentError, match="one series"):
        recurrence(np.zeros((3, 4)))
