"""The closed form of the gradient flow, and training that follows it."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from helpers.ufm_examples import centred, support
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.semantics import closed_form, half_times, learning_order, train_ufm

# ---- the formula --------------------------------------------------------------------------------


@given(sigma=st.floats(1e-3, 1e3), delta=st.floats(0, 50), t=st.floats(0, 1e3))
def test_closed_form_equals_the_formula_at_high_precision(sigma, delta, t):
    mpmath.mp.dps = 60
    s, e, time = mpmath.mpf(sigma), mpmath.e ** (2 * mpmath.mpf(delta)), mpmath.mpf(t)
    exact = 1 / (1 + (s * e - 1) * mpmath.exp(-2 * s * time))
    found = float(closed_form(np.array([sigma]), delta, t)[0])
    assert found == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


def test_closed_form_solves_the_differential_equation_of_the_two_layers():
    sigma, delta = np.array([3.0, 1.2, 0.5]), 3.0

    def flow(_, x):
        w, h = x[:3], x[3:]
        return np.concatenate([(sigma - w * h) * h, (sigma - w * h) * w])

    times = np.linspace(0, 20, 50)
    start = np.full(6, math.exp(-delta))
    solved = solve_ivp(flow, (0, 20), start, t_eval=times, rtol=1e-10, atol=1e-13).y
    assert np.allclose(
        solved[:3] * solved[3:], (sigma * closed_form(sigma, delta, times)).T
    )


def test_closed_form_starts_at_the_initial_scale_and_ends_at_one():
    sigma = np.array([4.0, 0.3])
    assert np.allclose(sigma * closed_form(sigma, 5.0, 0.0), math.exp(-10), rtol=1e-12)
    assert closed_form(sigma, 5.0, 1e6).tolist() == [1, 1]
    assert np.isfinite(closed_form(sigma, 2000.0, [0.0, 1e5])).all()


def test_closed_form_keeps_shape_and_kind():
    found = closed_form(
        torch.tensor([2.0, 1.0], dtype=torch.float32), 2.0, [[0.0, 1, 2]]
    )
    assert found.shape == (1, 3, 2) and found.dtype == torch.float32


def test_half_times_are_where_the_closed_form_is_one_half():
    sigma = np.array([7.0, 2.0, 0.4])
    times = half_times(sigma, 6.0)
    shares = [closed_form(sigma, 6.0, t)[i] for i, t in enumerate(times)]
    assert np.allclose(shares, 0.5)
    # The paper's T_i.
    assert np.allclose(half_times(sigma, 1e4) / 1e4, 1 / sigma, rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (([0.0, 1.0], 1.0, 1.0), "sigma"),
        (([1.0], 1.0, -1.0), "t must"),
        (([[1.0]], 1.0, 1.0), "sigma"),
    ],
)
def test_closed_form_refuses_impossible_arguments(arguments, word):
    with pytest.raises(ArgumentError, match=word):
        closed_form(np.array(arguments[0]), *arguments[1:])


def test_closed_form_refuses_nan():
    with pytest.raises(NonFiniteError):
        closed_form(np.array([1.0]), math.nan, 1.0)
    with pytest.raises(ArgumentError, match="half"):
        half_times(np.array([1.0]), 0.0)


# ---- training, square loss ----------------------------------------------------------------------


@pytest.mark.parametrize("d", [20, 12, 5, 1])
def test_aligned_start_follows_the_closed_form_over_the_whole_curve(d):
    run = train_ufm(centred(support()), d)
    assert run.sizes["concept"] == min(d, 11)
    worst = float((abs(run.projection - run.theory) / run.sigma).max())
    assert worst < 1e-3  # the bar is 1e-2
    assert float(run.theory[0].max() / run.sigma.min()) < 1e-5
    assert bool((run.projection[-1] > 0.999 * run.sigma).all())
    assert float(run.complement_norm.max()) < 1e-10
    assert np.allclose(run.half_time, run.theory_half_time, rtol=1e-3)


def test_fewer_dimensions_than_words_keep_the_largest_concepts():
    S = centred(support())
    run = train_ufm(S, 3)
    assert np.allclose(run.singular_value[-1], np.linalg.svd(S)[1][:3], rtol=1e-4)


def test_plain_gradient_descent_lags_as_far_as_its_step_says():
    S = centred(support(8, 20))
    lag = [
        float((abs(r.projection - r.theory) / r.sigma).max())
        for r in (
            train_ufm(S, 8, integrator="euler", step_size=s) for s in (0.02, 0.01)
        )
    ]
    assert lag[0] == pytest.approx(8 * 0.02 / 4, rel=0.25)
    assert lag[1] == pytest.approx(lag[0] / 2, rel=0.1)


def test_recorded_values_equal_independent_gradient_descent_by_autograd():
    S, P = support(6, 9), None
    P = S / S.sum(0)
    run = train_ufm(
        centred(S),
        4,
        "cross_entropy",
        "random",
        P=P,
        pi=np.arange(1.0, 10),
        ridge=0.05,
        delta=1.0,
        duration=4.0,
        integrator="euler",
        step_size=0.1,
    )
    weights = torch.arange(1.0, 10, dtype=torch.float64)
    weights = weights / weights.mean()
    rng = np.random.default_rng(0)
    scale, r = math.exp(-1.0), 4
    W = torch.tensor(
        rng.standard_normal((6, 4)) * scale * math.sqrt(r / 24), requires_grad=True
    )
    H = torch.tensor(
        rng.standard_normal((4, 9)) * scale * math.sqrt(r / 36), requires_grad=True
    )
    targets = torch.tensor(P)
    for _ in range(run.attrs["steps"]):
        losses = -(targets * torch.log_softmax(W @ H, 0)).sum(0) * weights
        loss = losses.sum() + 0.025 * ((W**2).sum() + (H**2).sum())
        dW, dH = torch.autograd.grad(loss, [W, H])
        with torch.no_grad():
            W -= run.attrs["step"] * dW
            H -= run.attrs["step"] * dH
    losses = -(targets * torch.log_softmax(W @ H, 0)).sum(0) * weights
    loss = losses.sum() + 0.025 * ((W**2).sum() + (H**2).sum())
    assert float(run.loss[-1]) == pytest.approx(loss.item(), rel=1e-10)
    assert np.allclose(run.singular_value[-1], np.linalg.svd((W @ H).detach())[1][:4])


def test_small_random_start_keeps_the_order_but_not_the_curve():
    run = train_ufm(centred(support()), 12, init="random", step_size=0.05)
    assert learning_order(run.sigma, run.half_time).spearman > 0.98
    ratio = (run.half_time / run.theory_half_time).values
    assert (ratio > 1.0).all() and (ratio < 1.5).all()
    assert float((abs(run.projection - run.theory) / run.sigma).max()) > 0.1
    assert float(run.complement_norm[-1]) < 1e-4
    assert np.allclose(run.singular_value[-1], run.sigma, rtol=1e-3)


def test_equal_context_weights_change_nothing():
    S = centred(support(6, 9))
    plain, weighted = (
        train_ufm(S, 6, delta=3.0),
        train_ufm(S, 6, delta=3.0, pi=np.full(9, 0.2)),
    )
    assert np.allclose(plain.projection, weighted.projection, rtol=1e-10)
    assert "theory" in plain and "theory" not in weighted


def test_a_ridge_shrinks_every_singular_value_by_itself():
    S = centred(support(6, 9))
    sigma = np.linalg.svd(S)[1]
    run = train_ufm(S, 6, ridge=0.5, duration=60.0, delta=3.0)
    assert np.allclose(
        run.singular_value[-1], np.maximum(sigma[:5] - 0.5, 0), atol=1e-3
    )


@settings(max_examples=15)
@given(st.permutations(range(7)), st.integers(0, 99))
def test_renaming_words_and_contexts_changes_nothing(order, seed):
    S = centred(support(5, 7, seed))
    if np.linalg.svd(S)[1][3] < 1e-3:
        return
    options = {"delta": 2.0, "duration": 3.0, "step_size": 0.2, "records": 5}
    here = train_ufm(S, 5, **options)
    there = train_ufm(S[::-1][:, order], 5, **options)
    assert np.allclose(here.projection, there.projection, atol=1e-9)


def test_a_tensor_gives_the_numbers_of_an_array():
    S = centred(support(6, 9))
    here, there = train_ufm(S, 4, delta=3.0), train_ufm(torch.tensor(S), 4, delta=3.0)
    assert np.allclose(here.projection, there.projection)


# ---- cross-entropy ------------------------------------------------------------------------------


def test_cross_entropy_learns_the_directions_of_weighted_P_first():
    S = support(12, 60)
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.full(12, 0.4), 60).T * S + 1e-6 * S
    P, pi = P / P.sum(0), rng.dirichlet(np.full(60, 0.4))
    run = train_ufm(
        centred(S),
        12,
        "cross_entropy",
        "random",
        P=P,
        pi=pi,
        duration=80.0,
        step_size=0.1,
    )
    early = run.overlap.sel(k=5).max("time")
    assert float(early.sel(matrix="P diag(π)")) > 0.95
    assert early.idxmax("matrix") == "P diag(π)"
    assert float(run.cosine[-1]) > float(run.cosine[5])


def test_the_support_is_read_off_its_centred_matrix():
    S = support(6, 9)
    S[:, 3] = 1  # every word follows
    given_P = train_ufm(centred(S), 6, "cross_entropy", P=S / S.sum(0), duration=5.0)
    read = train_ufm(centred(S), 6, "cross_entropy", duration=5.0)
    assert np.allclose(given_P.loss, read.loss)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"d": 0}, "d must"),
        ({"loss": "squared"}, "Did you mean 'square'"),
        ({"init": "zero"}, "init"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": 1e6}, "duration has no default"),
        ({"pi": np.ones(3)}, "pi must hold 9"),
        ({"pi": -np.ones(9)}, "pi"),
        ({"P": np.ones((6, 9)), "loss": "cross_entropy"}, "probabilities"),
        ({"duration": 1e12}, "steps"),
        ({"step_size": 2.0}, "step_size"),
        ({"records": 1}, "records"),
    ],
)
def test_bad_arguments_are_named(change, word):
    arguments = {"d": 4, **change}
    with pytest.raises(ArgumentError, match=word):
        train_ufm(centred(support(6, 9)), **arguments)


def test_an_uncentred_or_zero_matrix_is_refused():
    with pytest.raises(ArgumentError, match="mean 0"):
        train_ufm(support(6, 9), 4)
    with pytest.raises(ArgumentError, match="nothing to learn"):
        train_ufm(np.zeros((6, 9)), 4)
    with pytest.raises(NonFiniteError):
        train_ufm(np.full((6, 9), np.nan), 4)
