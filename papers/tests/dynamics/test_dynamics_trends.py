"""Trend and fluctuation of unevenly spaced series."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import make_smoothing_spline

from helpers.series_examples import EARLY, LATE, planted
from ontogeny.dynamics import detrend
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.dynamics.trends import (
    _demmler_reinsch,
    neighbour_residuals,
    step_coordinate,
)


@pytest.mark.parametrize("smoothing", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("steps", [EARLY, LATE], ids=["early", "late"])
def test_the_spline_is_scipys(steps, smoothing):
    u, y = step_coordinate(steps), np.random.default_rng(0).normal(size=len(steps))
    roughness, basis = _demmler_reinsch(u)
    ours = basis @ ((basis.T @ y) / (1 + smoothing * roughness))
    assert np.allclose(ours, make_smoothing_spline(u, y, lam=smoothing)(u), atol=1e-7)


def test_cross_validation_picks_a_smoothness_near_scipys():
    u = step_coordinate(LATE)
    y = np.sin(u) + 0.1 * np.random.default_rng(1).normal(size=len(u))
    ours, theirs = detrend(LATE, y).trend, make_smoothing_spline(u, y)(u)
    assert np.abs(ours - theirs).max() < 0.02


def test_trend_and_fluctuation_add_up_and_lines_have_no_fluctuation():
    u = step_coordinate(EARLY)
    values = np.stack([2 * u + 1, np.random.default_rng(0).normal(size=len(u))])
    found = detrend(EARLY, values)
    assert np.allclose(found.trend + found.fluctuation, values, atol=1e-12)
    assert np.abs(found.fluctuation[0]).max() < 1e-9
    assert found.noisy.tolist() == [False, True]
    assert (found.degrees_of_freedom <= len(u) / 2 + 1e-9).all()


@given(st.floats(-5, 5), st.floats(0.1, 10), st.integers(0, 5))
def test_shift_and_scale_pass_through(shift, scale, seed):
    values = planted(
        "exponential", "independent", EARLY, 1, 0.05, np.random.default_rng(seed)
    )[0]
    plain, moved = detrend(EARLY, values), detrend(EARLY, shift + scale * values)
    assert np.allclose(
        moved.fluctuation, scale * plain.fluctuation, atol=1e-8 * (1 + abs(shift))
    )
    assert moved.noisy == plain.noisy


def test_a_smooth_curve_without_noise_is_not_called_noisy():
    rng = np.random.default_rng(0)
    for kind in ("exponential", "two exponentials", "power law", "sigmoid"):
        assert not detrend(
            EARLY, planted(kind, "none", EARLY, 50, 0.0, rng)
        ).noisy.any()
        assert detrend(
            LATE, planted(kind, "independent", LATE, 50, 0.01, rng)
        ).noisy.all()


def test_neighbour_residuals_keep_the_size_of_noise_and_remove_cubics():
    matrix = neighbour_residuals(EARLY)
    u = step_coordinate(EARLY)
    assert np.abs(matrix @ np.vander(u / u.max(), 4)).max() < 1e-10
    noise = np.random.default_rng(0).normal(size=(len(u), 4000))
    assert np.allclose((matrix @ noise).std(axis=1), 1.0, atol=0.06)


def test_step_coordinate_does_not_see_the_unit_of_time():
    assert np.allclose(
        np.diff(step_coordinate(EARLY)), np.diff(step_coordinate(7 * EARLY))
    )


@pytest.mark.parametrize(
    ("steps", "values", "error", "words"),
    [
        (EARLY, np.zeros(5), ArgumentError, "one for each step"),
        (np.arange(9), np.zeros(9), ArgumentError, "at least 10 steps"),
        (np.arange(12), [np.nan] * 12, NonFiniteError, "12 NaN"),
    ],
)
def test_bad_input_is_named(steps, values, error, words):
    with pytest.raises(error, match=words):
        detrend(steps, values)
