"""The ratio of likelihoods: what it finds of planted changes, and how often noise passes it."""

import numpy as np
import pytest

from ontogeny.dynamics import development
from ontogeny.dynamics.reasons import CHANCE, Reason
from ontogeny.dynamics.shape_ratio import _simulated, noise_p_values
from ontogeny.dynamics.shapes import shapes

COUNT = 16
U = np.linspace(0, 1, COUNT)


def noise(rng, rows, phi, count=COUNT):
    found = rng.normal(size=(rows, count))
    for t in range(1, count):
        found[:, t] = phi * found[:, t - 1] + np.sqrt(1 - phi**2) * found[:, t]
    return found


def planted(kind, rng, rows=60):
    if kind == "overshoot":
        curves = np.tile(U * np.exp(-3 * U), (rows, 1))
    elif kind == "jump":
        curves = np.arange(COUNT) > rng.integers(1, COUNT - 2, size=(rows, 1))
    elif kind == "exponential":
        curves = 1 - np.exp(-rng.uniform(3, 10, size=(rows, 1)) * U)
    else:
        at, width = (
            rng.uniform(0.2, 0.8, size=(rows, 1)),
            rng.uniform(0.03, 0.12, size=(rows, 1)),
        )
        curves = 1 / (1 + np.exp(-(U - at) / width))
    return curves / np.ptp(curves.astype(float), axis=1, keepdims=True)


@pytest.mark.parametrize("phi", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["sigmoid", "exponential", "jump", "overshoot"])
def test_plain_changes_are_found_in_a_page_of_sixty_or_left_open_as_slow_noise(
    kind, phi
):
    rng = np.random.default_rng(2)
    size = 0.02 if kind == "overshoot" else 0.1
    values = planted(kind, rng) + size * noise(rng, 60, phi)
    found = development(np.arange(COUNT), values, 1.96 * np.sqrt(2) * size, n_draws=999)
    # 68 % of sigmoids and 71 % of exponentials are found: fewer than 30 of 60 in 1 of 500 tests
    assert found.changed.sum() >= (57 if kind in ("jump", "overshoot") else 30)
    slow = found.reason == Reason.SLOW
    assert (found.changed | slow).sum() >= 48 and not found.judgeable[slow].any()


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("doublings", [False, True])
def test_noise_with_memory_passes_as_often_as_the_levels_say(phi, doublings):
    rng, steps = np.random.default_rng(4), np.arange(COUNT, dtype=float)
    steps = np.append(0, np.exp2(steps[:-1])) if doublings else steps
    rows = (
        noise(rng, 800, phi)
        if phi < 1
        else rng.normal(size=(800, COUNT)).cumsum(axis=1)
    )
    short, slow = noise_p_values(steps, rows)
    passed = np.mean((short <= 0.01) & (slow <= CHANCE))
    assert passed <= (0.01 if phi <= 0.5 else 0.05) + 4 * np.sqrt(0.05 * 0.95 / 800)
    if phi <= 0.5:
        assert np.mean(short <= 0.01) <= 0.01 + 4 * np.sqrt(0.01 / 800)


@pytest.mark.parametrize("count", [6, 8, 16])
def test_small_p_values_are_no_smaller_than_simulated_noise_gives(count):
    rows = noise(np.random.default_rng(5), 20_000, 0.5, count)
    short, _ = noise_p_values(np.arange(count, dtype=float), rows)
    for level in (0.01, 0.001):
        assert (
            np.mean(short <= level) <= level + 5 * np.sqrt(level / 20_000) + 0.1 * level
        )


def test_many_checkpoints_are_compared_by_means_of_neighbours():
    rng, steps = np.random.default_rng(0), np.arange(1000.0)
    rise = 1 / (1 + np.exp((400 - steps) / 60)) + 0.1 * rng.normal(size=1000)
    short, slow = noise_p_values(
        steps, np.stack([rise, rng.normal(size=1000).cumsum()])
    )
    assert short[0] < 1e-6 and slow[0] < 0.01 and slow[1] > CHANCE


def test_the_same_p_values_come_again():
    rows, steps = (
        np.random.default_rng(1).normal(size=(5, 12)).cumsum(axis=1),
        np.arange(12.0),
    )
    before = noise_p_values(steps, rows)
    _simulated.cache_clear()
    np.testing.assert_array_equal(before, noise_p_values(steps, rows))


@pytest.mark.parametrize("freedom", [2, 3])
def test_noise_with_heavy_tails_or_that_grows_hardly_ever_changes(freedom):
    rng = np.random.default_rng(freedom)
    for rows in (
        rng.standard_t(freedom, (600, COUNT)),
        rng.normal(size=(600, COUNT)) * np.geomspace(1, 3, COUNT),
    ):
        short, slow = noise_p_values(np.arange(COUNT, dtype=float), rows)
        assert np.mean((short <= 0.01) & (slow <= CHANCE)) < 0.05


def test_shapes_with_one_size_do_not_lie_at_one_checkpoint():
    moved = shapes(COUNT)[0][:, 0]
    np.testing.assert_allclose(moved.mean(axis=1), 0, atol=1e-10)
    assert np.max(moved**2 / np.sum(moved**2, axis=1, keepdims=True)) < 0.85


def test_a_constant_series_is_no_trend():
    short, slow = noise_p_values(np.arange(8.0), np.full((1, 8), 3.0))
    assert short == slow == 1
