"""How often `development` is wrong, by simulation, and the guide's table against the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from helpers.paths import GUIDES
from ontogeny.dynamics import development, step_order_test

GUIDE = GUIDES / "nulls.md"
N_SERIES = 400
# Five binomial standard errors of the table (2,000 series) and of the test (400) together.
TOLERANCE = 5 * np.sqrt(0.25 / 2000 + 0.25 / N_SERIES)


def simulate(shape: str, n_steps: int, noise: float, n_series: int, seed: int = 0) -> np.ndarray:
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
        return lfilter([1.0], [1.0, -0.5], rng.normal(size=(n_series, n_steps + 50)))[:, 50:]
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
    # alpha only says for which level draws are added; the plain 1 % is judged here
    return float(np.mean(step_order_test(values, n_permutations=4999, alpha=0.5) <= 0.01))


def table() -> list[tuple[str, float, dict[int, float]]]:
    """The rows of the guide's table of rates: shape, noise, {steps: rate}."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in GUIDE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and line.count("|") == 6 and "." in line
    ]
    counts = (12, 24, 48)
    return [
        (name, float(noise.strip("–") or 0), dict(zip(counts, map(float, found), strict=True)))
        for name, noise, *found in rows
    ]


@pytest.mark.parametrize("row", table(), ids=lambda row: f"{row[0]}-{row[1]}")
def test_rates_are_those_in_the_guide(row):
    shape, noise, rates_of = row
    for n_steps in (12, 24):
        assert rates(shape, n_steps, noise, N_SERIES) == pytest.approx(
            rates_of[n_steps], abs=TOLERANCE
        )


def test_independent_noise_in_a_family_of_rows_rarely_develops():
    families = 80
    found = [
        development(np.arange(20), np.random.default_rng(k).normal(size=(12, 20))).developed.any()
        for k in range(families)
    ]
    # at most 1 % of families; 6 or more of 80 at that rate have a probability of 2e-4
    assert sum(found) < 6


def test_distances_to_a_jittering_reference_develop_only_if_it_is_not_left_out():
    distances = distances_to_jittering_reference(np.random.default_rng(3), 300, 12)
    steps = np.arange(12)
    left_out = development(steps, distances, reference_index=11)
    assert not left_out.developed.any()
    uniform = np.mean(left_out.p_uncorrected <= 0.2)
    assert uniform == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / 300))
    kept = development(steps, distances)
    assert np.abs(kept.change).mean() > 3 * np.abs(left_out.change).mean()
    assert kept.p_uncorrected.mean() < left_out.p_uncorrected.mean() - 0.1


def test_p_values_of_noise_are_uniform_with_many_ties():
    counts = np.random.default_rng(0).integers(3, 6, size=(1000, 15))
    p = step_order_test(counts, n_permutations=1999, alpha=0.9)
    for level in (0.05, 0.2, 0.5, 0.8):
        assert np.mean(p <= level) <= level + 5 * np.sqrt(level * (1 - level) / 1000)
