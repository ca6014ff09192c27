"""How often `development` is wrong, by simulation, and the table of the benchmarks against the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from helpers.paths import ROOT
from ontogeny.dynamics import development, holm, step_order_test, trend_test
from ontogeny.dynamics.half_change import half_change_interval

TABLES = ROOT / "benchmarks" / "README.md"
N_SERIES = 400
# Five binomial standard errors of the table (2,000 series) and of the test (400) together.
TOLERANCE = 5 * np.sqrt(0.25 / 2000 + 0.25 / N_SERIES)


def simulate(
    shape: str, n_steps: int, noise: float, n_series: int, seed: int = 0
) -> np.ndarray:
    """Series (n_series, n_steps) whose signal spans 1, with noise of standard deviation `noise`."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n_steps)
    eps = rng.normal(size=(n_series, n_steps))
    if shape == "independent noise":
        return eps
    if shape == "heavy-tailed noise":
        return rng.standard_t(2, size=(n_series, n_steps))
    if shape == "noisy reference":
        return distances_to_jittering_reference(rng, n_series, n_steps)
    if shape == "autocorrelated noise":
        return lfilter([1.0], [1.0, -0.5], rng.normal(size=(n_series, n_steps + 50)))[
            :, 50:
        ]
    if shape == "random walk":
        return np.cumsum(eps, axis=1)
    signal = {
        "linear rise": x,
        "exponential decay": np.exp(-6 * x),
        "fast decay": np.exp(-15 * x),
        "sigmoid": 1 / (1 + np.exp(-12 * (x - 0.5))),
        "late sigmoid": 1 / (1 + np.exp(-25 * (x - 0.85))),
        "bump": np.exp(-(((x - 0.5) / 0.15) ** 2) / 2),
    }[shape]
    return signal + noise * eps


def distances_to_jittering_reference(
    rng: np.random.Generator, n_series: int, n_steps: int
) -> np.ndarray:
    """Distances of models that jitter around one place to the last of them; 0 at the last."""
    models = rng.normal(size=(n_series, n_steps, 20))
    return np.linalg.norm(models - models[:, -1:], axis=2)


def rates(shape: str, n_steps: int, noise: float, n_series: int) -> float:
    """Share of series with an uncorrected p-value of at most 0.01."""
    values = simulate(shape, n_steps, noise, n_series)
    if shape == "noisy reference":
        values[:, -1] = np.nan
    # level only says up to which p-value draws are added; the plain 1 % is judged here
    return float(np.mean(step_order_test(values, n_draws=4999, level=0.5) <= 0.01))


def table() -> list[tuple[str, float, dict[int, float]]]:
    """The rows of the table of rates: shape, noise, {steps: rate}."""
    text = TABLES.read_text(encoding="utf-8").split("<!-- order test -->")[1]
    lines = text.split("<!-- end -->")[0].split("\n| --- ")[1].splitlines()[1:]
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in lines
        if line
    ]
    counts = (12, 24, 48)
    return [
        (
            name,
            float(noise.strip("–") or 0),
            dict(zip(counts, map(float, found), strict=True)),
        )
        for name, noise, *found in rows
    ]


@pytest.mark.parametrize("row", table(), ids=lambda row: f"{row[0]}-{row[1]}")
def test_rates_are_those_of_the_table(row):
    shape, noise, rates_of = row
    for n_steps in (12, 24):
        assert rates(shape, n_steps, noise, N_SERIES) == pytest.approx(
            rates_of[n_steps], abs=TOLERANCE
        )


def test_independent_noise_in_a_family_of_rows_rarely_changes():
    families = 40
    rows = np.random.default_rng(0).normal(size=(families, 12, 20))
    p = development(np.arange(20), rows, n_draws=1999, n_tests=12).p_uncorrected
    # at most 1 % of families; 4 or more of 40 at that rate have a probability of 6e-4
    assert np.sum([holm(family).min() <= 0.01 for family in p]) < 4


def test_distances_to_a_jittering_reference_are_exchangeable_only_if_it_is_left_out():
    distances = distances_to_jittering_reference(np.random.default_rng(3), 300, 12)
    kept = step_order_test(distances, 1999, level=0.9)
    left_out = step_order_test(distances[:, :-1], 1999, level=0.9)
    assert np.mean(left_out <= 0.2) == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / 300))
    assert kept.mean() < left_out.mean() - 0.1
    assert not development(np.arange(12), distances, reference_index=11).changed.any()


def memory(rng: np.random.Generator, shape: tuple[int, ...], phi: float) -> np.ndarray:
    """Stationary autoregressive noise over axis 1, of variance 1."""
    found = rng.normal(size=shape)
    for t in range(1, shape[1]):
        found[:, t] = phi * found[:, t - 1] + np.sqrt(1 - phi**2) * found[:, t]
    return found


def log_steps(count: int) -> np.ndarray:
    return np.append(0, np.exp2(np.arange(count - 1)))


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, 0.95])
@pytest.mark.parametrize("count", [12, 24])
def test_values_with_memory_rarely_follow_a_trend(phi, count):
    rng = np.random.default_rng(count)
    for steps in (np.arange(count), log_steps(count)):
        p = trend_test(steps, memory(rng, (1200, count), phi))
        assert np.mean(p <= 0.01) <= 0.01 + 3 * np.sqrt(0.01 / 1200)
        # 50 families of 24 rows: 4 or more changed at a rate of 1 % have a probability of .002
        assert np.sum(p.reshape(50, 24).min(axis=1) <= 0.01 / 24) < 4


@pytest.mark.parametrize("phi", [0.5, 0.95])
@pytest.mark.parametrize("fresh", [0.0, 0.3])
@pytest.mark.parametrize("reference", [0, 15])
def test_distances_of_points_with_memory_rarely_follow_a_trend(phi, fresh, reference):
    rng = np.random.default_rng(7)
    points = memory(rng, (240, 16, 200), phi) + fresh * rng.normal(size=(240, 16, 200))
    distances = np.linalg.norm(points - points[:, [reference]], axis=2)
    for values in (distances, 1 - distances**2 / 500):
        p = trend_test(np.arange(16), values, reference)
        assert np.sum(p <= 0.01) <= 8  # of 240: more have a probability of .002 at 1 %
        assert np.sum(p <= 0.01 / 24) <= 2


@pytest.mark.parametrize("shape", ["linear rise", "exponential decay", "sigmoid"])
def test_real_developments_are_told_from_memory(shape):
    values = simulate(shape, 24, 0.01, 50)
    assert np.mean(24 * trend_test(np.arange(24), values) <= 0.01) > 0.9


def test_a_jump_is_told_from_memory():
    rng = np.random.default_rng(0)
    values = (np.arange(24) > 10) + 0.03 * rng.normal(size=(50, 24))
    found = development(np.arange(24), values, n_tests=50)
    assert found.changed.mean() > 0.9


CURVES = {
    "sigmoid": lambda u: 1 / (1 + np.exp(-(u - 0.42) / 0.07)),
    "jump": lambda u: (u > 0.431).astype(float),
    "square root": np.sqrt,
    "exponential": lambda u: 1 - np.exp(-5 * u),
    "overshoot": lambda u: 1 - np.exp(-4 * u) * np.cos(6 * u),
    "line": lambda u: u,
}


@pytest.mark.parametrize(
    "steps", [np.linspace(0, 16384, 20), log_steps(16)], ids=["even", "log"]
)
@pytest.mark.parametrize("shape", CURVES)
def test_intervals_hold_the_half_change_step_of_the_continuous_curve(shape, steps):
    rng = np.random.default_rng(1)
    fine = np.unique(
        np.append(np.linspace(0, steps[-1], 20_001), np.geomspace(0.1, steps[-1]))
    )

    def progress(at):
        u = np.append(at, [0.0, steps[-1]]) / steps[-1]
        found = CURVES[shape](u)
        return (found[:-2] - found[-2]) / (found[-1] - found[-2])

    truth = fine[np.argmax(progress(fine) >= 0.5)]
    held = []
    for noise in (0.01, 0.05):
        floor = np.full(len(steps), 1.96 * np.sqrt(2) * noise)
        for _ in range(60):
            values = progress(steps) + noise * rng.normal(size=len(steps))
            low, high = half_change_interval(steps, values, floor, random_state=rng)
            held.append(low <= truth <= high)
    assert np.mean(held) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 120)


def test_p_values_of_noise_are_uniform_with_many_ties():
    counts = np.random.default_rng(0).integers(3, 6, size=(1000, 15))
    p = step_order_test(counts, n_draws=1999, level=0.9)
    for level in (0.05, 0.2, 0.5, 0.8):
        assert np.mean(p <= level) <= level + 5 * np.sqrt(level * (1 - level) / 1000)
