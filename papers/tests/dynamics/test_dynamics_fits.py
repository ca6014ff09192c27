"""Decays fitted to series, and which shape they have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit
from scipy.stats import t as student

from helpers.series_examples import EARLY, LATE
from ontogeny.dynamics import (
    compare_fits,
    fit_exponential,
    fit_power,
    fit_stretched_exponential,
)
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.dynamics.decay_shapes import SHAPES


@settings(max_examples=25)
@given(
    st.floats(0.02, 0.6),
    st.floats(0.2, 5),
    st.floats(-3, 3),
    st.sampled_from([-1, 1]),
    st.booleans(),
)
def test_planted_exponentials_come_back(scale, amplitude, offset, sign, late):
    steps = LATE if late else EARLY
    rate = -1 / (scale * steps[-1])
    fit = fit_exponential(steps, sign * amplitude * np.exp(rate * steps) + offset)
    assert fit.determined
    assert fit.rate == pytest.approx(rate, rel=1e-4)
    assert fit.amplitude == pytest.approx(sign * amplitude, rel=1e-4)
    assert fit.offset == pytest.approx(offset, abs=1e-4 * amplitude)
    assert fit.r2 == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(
    ("fit", "curve", "parameters"),
    [
        (fit_power, lambda t: 2 * (1 + t / 90) ** -0.7 + 1, (90, 0.7)),
        (fit_power, lambda t: -2 * (1 + t / 30) ** -2.0, (30, 2.0)),
        (
            fit_stretched_exponential,
            lambda t: 2 * np.exp(-((t / 90) ** 0.6)) + 1,
            (90, 0.6),
        ),
        (fit_stretched_exponential, lambda t: np.exp(-((t / 200) ** 2.0)), (200, 2.0)),
    ],
)
def test_planted_shapes_come_back(fit, curve, parameters):
    found = fit(EARLY, curve(EARLY))
    assert found.determined, found.reason
    assert (found.parameters["scale"], found.parameters["exponent"]) == pytest.approx(
        parameters, rel=1e-3
    )


def test_rising_exponentials_and_those_without_offset():
    rise = fit_exponential(EARLY, 1 - np.exp(-EARLY / 100))
    assert (rise.amplitude, rise.offset) == pytest.approx((-1, 1), rel=1e-6)
    growth = fit_exponential(EARLY, 2 * np.exp(EARLY / 300), offset=False)
    assert (growth.amplitude, growth.rate) == pytest.approx((2, 1 / 300), rel=1e-6)
    assert growth.offset == 0.0 and growth.stderr["offset"] == 0.0


def test_no_start_of_another_library_finds_a_better_fit():
    rng = np.random.default_rng(0)

    def curve(t, a, c, b):
        return a * np.exp(c * t) + b

    for _ in range(15):
        rate = -np.exp(rng.uniform(np.log(1 / 500), np.log(1 / 8)))
        y = curve(EARLY, rng.uniform(0.5, 3), rate, rng.normal()) + 0.05 * rng.normal(
            size=24
        )
        ours = np.sum(fit_exponential(EARLY, y).residuals ** 2)
        for start in (-1 / 5, -1 / 20, -1 / 60, -1 / 200, -1 / 600):
            try:
                p, _ = curve_fit(curve, EARLY, y, p0=[y[0] - y[-1], start, y[-1]])
            except RuntimeError:
                continue
            assert ours <= np.sum((y - curve(EARLY, *p)) ** 2) * (1 + 1e-6)


def test_standard_errors_are_those_of_another_library():
    y = 2 * np.exp(-EARLY / 70) + 1 + 0.05 * np.random.default_rng(3).normal(size=24)
    fit = fit_exponential(EARLY, y)
    _, covariance = curve_fit(
        lambda t, a, c, b: a * np.exp(c * t) + b, EARLY, y, p0=[2, -1 / 70, 1]
    )
    ours = [fit.stderr[name] for name in ("amplitude", "rate", "offset")]
    assert np.allclose(ours, np.sqrt(np.diag(covariance)), rtol=1e-3)


def test_standard_errors_cover_planted_parameters():
    rng = np.random.default_rng(0)
    reach = student.ppf(0.975, len(EARLY) - 3)
    truth = {"amplitude": 1.5, "rate": -1 / 120, "offset": 0.5}
    clean = 1.5 * np.exp(-EARLY / 120) + 0.5
    inside = dict.fromkeys(truth, 0)
    trials = 150
    for _ in range(trials):
        fit = fit_exponential(EARLY, clean + 0.05 * rng.normal(size=len(EARLY)))
        for name, value in truth.items():
            inside[name] += abs(fit.parameters[name] - value) < reach * fit.stderr[name]
    # 95 % of 150 is 142 (sd 2.7); a curved problem may lose a little
    assert all(130 <= count <= 150 for count in inside.values()), inside


@given(st.floats(0.1, 1e4))
@settings(max_examples=10)
def test_the_unit_of_time_only_scales_the_rate(factor):
    y = np.exp(-EARLY / 80) + 0.05 * np.random.default_rng(0).normal(size=len(EARLY))
    plain, scaled = fit_exponential(EARLY, y), fit_exponential(factor * EARLY, y)
    assert scaled.rate * factor == pytest.approx(plain.rate, rel=1e-6)
    assert scaled.stderr["rate"] * factor == pytest.approx(
        plain.stderr["rate"], rel=1e-5
    )
    assert scaled.aicc == pytest.approx(plain.aicc, rel=1e-9)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.full(24, 3.0), "constant"),
        (1 - EARLY / 2000, "straight"),
        (np.where(EARLY == 0, 1.0, 0.0), "between two checkpoints"),
        (np.where(np.arange(24) < 4, np.arange(24.0), np.nan), "4 values are too few"),
    ],
)
def test_what_the_data_leave_open_is_said(values, reason):
    fit = fit_exponential(EARLY, values)
    assert not fit.determined and reason in fit.reason


def test_missing_steps_and_the_reference_are_left_out():
    y = np.exp(-EARLY / 100)
    holes = y.copy()
    holes[[3, 9]] = np.nan
    holes[-1] = 77.0
    fit = fit_exponential(EARLY, holes, reference_index=23)
    assert fit.rate == pytest.approx(-1 / 100, rel=1e-6) and fit.n == 21
    assert np.isnan(fit.residuals[[3, 9, 23]]).all()
    assert fit.fitted == pytest.approx(y, abs=1e-6)


def test_slopes_of_the_shapes_are_their_derivatives():
    s = np.linspace(0, 1, 7)
    for name, theta in (
        ("exponential", [-3.0]),
        ("power", [0.2, 1.3]),
        ("stretched-exponential", [0.3, 0.7]),
    ):
        shape, theta = SHAPES[name], np.array(theta)
        for i in range(len(theta)):
            step = np.zeros(len(theta))
            step[i] = 1e-6
            numeric = (
                shape.curve(s, theta + step) - shape.curve(s, theta - step)
            ) / 2e-6
            assert np.allclose(shape.slopes(s, theta)[:, i], numeric, atol=1e-7)


SHARES = {
    "exponential": lambda t: np.exp(-t / 150),
    "power": lambda t: (1 + t / 25) ** -1.0,
    "stretched-exponential": lambda t: np.exp(-((t / 100) ** 0.5)),
    "straight": lambda t: 1 - t / 1500,
    "constant": lambda t: np.ones_like(t),
}


@pytest.mark.parametrize("criterion", ["aicc", "bic"])
@pytest.mark.parametrize("shape", SHARES)
def test_the_shape_of_planted_decays_is_found(shape, criterion):
    rng = np.random.default_rng(0)
    found = [
        compare_fits(
            EARLY,
            SHARES[shape](EARLY) + 0.02 * rng.normal(size=24),
            criterion=criterion,
        )
        for _ in range(12)
    ]
    assert sum(each.best == shape for each in found) >= 7
    earned = sum(each.exponential for each in found)
    assert earned >= 7 if shape == "exponential" else earned <= 2
    assert all(sum(each.weights.values()) == pytest.approx(1.0) for each in found)


def test_residuals_with_an_order_take_the_name_away():
    steps = np.arange(60.0)
    wave = 0.05 * np.sin(steps / 4)
    found = compare_fits(steps, np.exp(-steps / 15) + wave)
    assert found.fits["exponential"].residual_p < 0.02
    assert not found.exponential
    assert "residuals are not noise" in found.verdict


def test_exact_data_prefer_the_plainer_shape():
    found = compare_fits(EARLY, 3 * np.exp(-EARLY / 90) + 1)
    assert found.best == "exponential" and found.exponential


def test_nothing_to_fit_is_no_error_but_has_no_best():
    found = compare_fits(EARLY, np.full(24, 2.0))
    assert found.best == "" and not found.exponential
    assert found.verdict == "No comparison: the series is constant."


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("count", [3, 4, 5, 6, 7])
def test_exponential_is_not_earned_where_not_all_shapes_could_be_compared(
    count, offset
):
    steps = np.arange(count) * 10.0
    noise = 1e-3 * np.random.default_rng(count).normal(size=count)
    found = compare_fits(steps, np.exp(-steps / 20) + noise, offset)
    compared = all(np.isfinite(fit.aicc) for fit in found.fits.values())
    assert compared == (count >= 6 + offset)
    assert bool(found.best) == compared and (compared or not found.exponential)
    # 4 points of a decay must not read "no decay, a constant fits best".
    if not compared:
        assert "too few" in found.reason and found.verdict.startswith("No comparison: ")
        assert np.isnan(list(found.weights.values())).all()


@pytest.mark.parametrize(
    ("steps", "values", "options", "error", "words"),
    [
        ([0, 2, 1], [1, 2, 3], {}, ArgumentError, "steps must increase"),
        (EARLY, np.zeros((24, 2)), {}, ArgumentError, "one series"),
        (EARLY, np.full(24, np.inf), {}, NonFiniteError, "infinite"),
        (EARLY, ["a"] * 24, {}, ArgumentError, "values must be an array of numbers"),
        (["a"], [1.0], {}, ArgumentError, "steps must be an array of numbers"),
        (
            EARLY,
            np.zeros(24),
            {"reference_index": 40},
            ArgumentError,
            "reference_index",
        ),
    ],
)
def test_bad_input_is_named(steps, values, options, error, words):
    with pytest.raises(error, match=words):
        fit_exponential(steps, values, **options)


def test_unknown_criteria_are_refused():
    with pytest.raises(ArgumentError, match="Did you mean 'aicc'"):
        compare_fits(EARLY, np.zeros(24), criterion="aic")
