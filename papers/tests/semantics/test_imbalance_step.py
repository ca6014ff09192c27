"""STEP imbalance: exact factors, and what reweighting does to the order of learning."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ontogeny.errors import ArgumentError
from ontogeny.semantics import (
    first_crossing,
    loss_growth_rates,
    step_imbalance,
    train_ufm,
)


@given(st.integers(1, 12), st.integers(1, 30))
def test_factors_are_those_of_the_centred_support(half, R):
    step = step_imbalance(2 * half, R)
    V = 2 * half
    assert step.S.shape == (V, half * (R + 1))
    assert (step.S.sum(axis=1) == np.repeat([R, 1], half)).all()
    assert (step.S.sum(axis=0) == 1).all()
    eye = np.eye(V - 1)
    assert np.allclose(step.U.T @ step.U, eye, atol=1e-12)
    assert np.allclose(step.V.T @ step.V, eye, atol=1e-12)
    assert np.allclose(step.U * step.sigma @ step.V.T, step.S_centred, atol=1e-12)
    assert np.allclose(np.linalg.svd(step.S_centred)[1][: V - 1], step.sigma)


def test_singular_values_are_those_of_the_paper():
    step = step_imbalance(8, 10)
    expected = [math.sqrt(10)] * 3 + [math.sqrt(5.5)] + [1.0] * 3
    assert np.allclose(step.sigma, expected, rtol=1e-15)


def test_the_papers_weights_level_the_singular_values_but_not_the_growth_rates():
    step = step_imbalance(8, 10)
    omega = step.reweighting("paper")
    assert np.allclose(np.linalg.svd(step.S_centred * omega)[1][:7], 1)
    assert np.ptp(loss_growth_rates(step.S_centred, omega)[:7]) > 0.5
    level = loss_growth_rates(step.S_centred, step.reweighting("equal-rates"))[:7]
    assert np.allclose(level, 1, rtol=1e-12)


def gradient_descent(step, omega, delta, eta, steps, seed=None):
    """Plain gradient descent on (1/2)‖(S̃ − W H) Ω‖², written out; projections over time."""
    V = len(step.S)
    scale = math.exp(-delta)
    if seed is None:
        W, H = scale * step.U, scale * step.V.T
    else:
        rng = np.random.default_rng(seed)
        W, H = (1e-3 * rng.standard_normal(s) for s in ((V, V), (V, step.S.shape[1])))
    series = []
    for _ in range(steps):
        series.append(np.sum((step.U.T @ W) * (H @ step.V).T, axis=1))
        residual = (step.S_centred - W @ H) * omega**2
        W, H = W + eta * residual @ H.T, H + eta * W.T @ residual
    return eta * np.arange(steps), np.array(series)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("rule", ["none", "paper", "equal-rates"])
def test_reweighting_changes_the_order_as_said(rule, seed):
    step = step_imbalance(8, 10)
    times, series = gradient_descent(
        step, step.reweighting(rule), 8.0, 0.01, 4000, seed
    )
    half = first_crossing(times, series.T, step.sigma / 2)
    majority, between, minority = (
        half[step.kind == kind].mean() for kind in ("majority", "between", "minority")
    )
    if rule == "none":
        assert majority < between < minority and minority > 2 * majority
    elif rule == "paper":  # printed as the cure, it turns the order round
        assert minority < between < majority and majority > 2 * minority
    else:
        found = [majority, between, minority]
        assert max(found) < 1.15 * min(found)


@pytest.mark.parametrize("rule", ["none", "paper", "equal-rates"])
def test_train_ufm_with_squared_weights_is_gradient_descent_on_the_weighted_loss(rule):
    step = step_imbalance(8, 10)
    omega = step.reweighting(rule)
    clock = (omega**2).mean()
    times, series = gradient_descent(step, omega, 4.0, 2e-3, 3000)
    run = train_ufm(
        step.S_centred, 7, pi=omega**2, delta=4.0, duration=6.0 * clock - 2e-3 * clock
    )
    ours = np.array([np.interp(run.time / clock, times, s) for s in series.T]).T
    # Within a group of equal singular values any basis will do, so compare what they share.
    for kind in ("majority", "between", "minority"):
        chosen = step.kind == kind
        assert np.allclose(
            run.projection[:, chosen].mean("concept"),
            ours[:, chosen].mean(1),
            atol=0.02,
        )


@pytest.mark.parametrize(
    ("V", "R", "word"), [(5, 2, "even"), (0, 2, "V"), (4, 0, "R"), (4, 1.5, "R")]
)
def test_impossible_sizes_are_refused(V, R, word):
    with pytest.raises(ArgumentError, match=word):
        step_imbalance(V, R)


def test_unknown_rules_and_weights_are_refused():
    step = step_imbalance(4, 3)
    with pytest.raises(ArgumentError, match="rule"):
        step.reweighting("papers")
    with pytest.raises(ArgumentError, match="omega"):
        loss_growth_rates(step.S_centred, np.ones(3))
