"""How often verdicts on the shape of curves are wrong; larger in benchmarks/curve_verdicts.py."""

import numpy as np
import pytest

from helpers import shape_truths as truths
from helpers.series_examples import LATE, planted
from ontogeny.dynamics import compare_fits, compare_signals, learning_progress, regimes
from ontogeny_papers.dynamics.decay_shapes import TwoExponentials
from ontogeny_papers.dynamics.regime_search import gradual_gains, gradual_levels


@pytest.mark.parametrize("kind", truths.DECAYS)
def test_an_exponential_is_told_from_what_is_none(kind):
    rng = np.random.default_rng(2)
    steps = truths.even(12)
    found = [
        compare_fits(steps, truths.decay(kind, steps, 0.02, rng)) for _ in range(25)
    ]
    called = sum(each.exponential for each in found)
    assert called >= 3 if kind == "exponential" else called <= 3  # 10 % of 25, and 46 %
    assert all(each.remaining or each.evidence["exponential"] >= 0.9 for each in found)


def test_too_much_noise_leaves_the_shape_open_and_says_from_what():
    steps = truths.even(12)
    found = compare_fits(
        steps, truths.decay("power law", steps, 0.1, np.random.default_rng(0))
    )
    assert not found.exponential
    assert "a power law" in found.verdict or "No decay" in found.verdict


def test_slopes_of_two_exponentials_are_their_derivatives():
    s, theta, shape = np.linspace(0, 1, 7), np.array([2.0, 4.0, 0.3]), TwoExponentials()
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-6
        numeric = (shape.curve(s, theta + step) - shape.curve(s, theta - step)) / 2e-6
        assert np.allclose(shape.slopes(s, theta)[:, i], numeric, atol=1e-7)


@pytest.mark.parametrize("kind", ["linear", "growing", "cosine", "warm-up and decay"])
def test_noise_that_changes_gradually_has_no_date(kind):
    rng = np.random.default_rng(3)
    found = [
        regimes(*truths.gradual_noise(kind, 50, rng), n_draws=99, random_state=i)
        for i in range(20)
    ]
    assert sum(each.boundary is not None for each in found) <= 3
    assert any(each.order == "gradual" for each in found)


def test_noise_that_changes_at_once_is_dated():
    rng = np.random.default_rng(3)
    found = []
    for i in range(6):
        values = planted("exponential", "independent", LATE, 6, 0.05, rng, 25, 10.0)
        found.append(regimes(LATE, values.T, n_draws=99, random_state=i).order)
    assert found.count("smooth then noisy") >= 4


def test_a_gradual_change_of_the_planted_size_is_found():
    level = np.geomspace(1, 10, 400)
    noise = np.random.default_rng(0).laplace(size=(400, 2)) * level[:, None]
    levels = gradual_levels(np.arange(400.0))
    gain, best = gradual_gains(noise, np.zeros(2), levels)
    assert gain > 50 and levels[best][-1] / levels[best][0] == pytest.approx(
        10, rel=0.4
    )


@pytest.mark.parametrize("kind", ["two jumps", "sine", "sawtooth", "warm restarts"])
def test_a_shared_schedule_is_no_relation(kind):
    rng, related = np.random.default_rng(4), 0
    for i in range(25):
        steps, x, y = truths.scheduled_pair(kind, 24, rng, noise=0.01)
        found = compare_signals(x, y, steps, n_draws=99, random_state=i)
        related += found.pearson_p <= 0.05
        assert np.isnan(found.pearson_p) == bool(found.reason)
    assert related <= 5  # 7 % of 25 at most


def test_pairs_that_share_a_schedule_have_no_joint_verdict():
    rng = np.random.default_rng(5)
    steps, *pair = truths.scheduled_pair("sawtooth", 24, rng, noise=0.0005)
    table = [one[:, None] + 0.005 * rng.normal(size=(24, 4)) for one in pair]
    found = compare_signals(*table, steps, n_draws=99)
    assert np.isnan(found.joint_p) and found.joint_structure_p <= 0.2
    assert "schedule" in " ".join(found.reason)


def test_a_walk_approaches_its_end_so_nothing_is_called_learned():
    rng, steps = np.random.default_rng(6), truths.even(24)
    curve = truths.walk("distance to the last of a walk", 24, rng)
    seen = learning_progress(steps, curve, 0.1, reference_index=23)
    assert (
        seen.progressed
        and "as a walk's distance to its end would be" in seen.sentences[0]
    )
    assert not any("earn" in sentence for sentence in seen.sentences)
