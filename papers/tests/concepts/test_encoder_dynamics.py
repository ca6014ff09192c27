"""Encoders along a run: codes as logits, matching, controls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import entropy

import ontogeny as og
from ontogeny import dynamics
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.dynamics.logits import concept_shares


def _run(n=600, m=12, r=4, seed=0):
    """Activations that turn from noise into a mixture of r sources, and the sources."""
    rng = np.random.default_rng(seed)
    sources = rng.laplace(size=(n, r))
    mixing, noise = rng.normal(size=(r, m)), rng.normal(size=(n, m))

    def activations(share):
        return share * sources @ mixing + (1 - share) * noise

    return activations, sources


def test_the_distance_falls_as_the_activations_come_to_tell_the_concepts():
    activations, U = _run()
    shares = np.linspace(0, 1, 6)
    found = [
        dynamics.encode(activations(s)[:400], activations(s)[400:], U[:400], U[400:])
        for s in shares
    ]
    for name in ("mse", "kl", "cross_entropy"):
        assert (np.diff([getattr(f, name) for f in found]) < 0).all()
    assert (np.diff([f.correlation for f in found]) > 0).all()
    assert found[-1].kl < 1e-12 and found[-1].correlation == pytest.approx(1)
    assert found[0].correlation < 0.2


def test_an_invertible_change_of_basis_changes_nothing():
    activations, U = _run()
    A = activations(0.6)
    mixing = np.random.default_rng(1).normal(size=(12, 12))
    plain = dynamics.encode(A[:400], A[400:], U[:400], U[400:])
    turned = dynamics.encode(A[:400] @ mixing, A[400:] @ mixing, U[:400], U[400:])
    np.testing.assert_allclose(turned.codes, plain.codes, atol=1e-9)


def test_shuffled_codes_and_foreign_activations_are_told_nothing():
    activations, U = _run()
    A, rng = activations(0.9), np.random.default_rng(5)
    real = dynamics.encode(A[:400], A[400:], U[:400], U[400:])
    shuffled = dynamics.encode(A[:400], A[400:], U[rng.permutation(400)], U[400:])
    foreign = rng.normal(size=A.shape)
    other = dynamics.encode(foreign[:400], foreign[400:], U[:400], U[400:])
    for control in (shuffled, other):
        assert abs(control.correlation) < 0.15
        assert control.kl > 5 * real.kl


def test_matching_undoes_order_and_sign_and_costs_nothing_where_there_are_none():
    activations, U = _run()
    A = activations(0.8)
    order, signs = [2, 0, 3, 1], np.array([1, -1, -1, 1.0])
    mixed = U[400:, order] * signs
    plain = dynamics.encode(A[:400], A[400:], U[:400], U[400:])
    matching = dynamics.match_codes(U[400:], mixed)
    np.testing.assert_allclose(matching.apply(mixed), U[400:])
    np.testing.assert_allclose(matching.correlation, 1)
    for match in (matching, "each"):
        found = dynamics.encode(A[:400], A[400:], U[:400], mixed, match=match)
        assert found.kl == pytest.approx(plain.kl) and found.matching is not None
    unmatched = dynamics.encode(A[:400], A[400:], U[:400], mixed)
    assert unmatched.matching is None and unmatched.kl > plain.kl


def test_an_assignment_beats_a_greedy_choice():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    U = np.stack([x[:, 0], 0.8 * x[:, 0] + 0.6 * x[:, 1]], axis=1)
    V = np.stack(
        [0.95 * x[:, 0] + 0.312 * x[:, 2], 0.9 * x[:, 0] - 0.436 * x[:, 1]], axis=1
    )
    score = np.abs(np.corrcoef(U.T, V.T)[:2, 2:])
    best = max(score[0, 0] + score[1, 1], score[0, 1] + score[1, 0])
    assert dynamics.match_codes(U, V).correlation.sum() == pytest.approx(best)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(-8, 3))
def test_divergences_equal_scipys_and_keep_their_digits_near_zero(seed, exponent):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(9, 5)) * 3
    moved = Z + 10**exponent * rng.normal(size=Z.shape)
    found = dynamics.compare_logits(moved, Z)
    P, Q = (
        softmax(Z.astype(np.longdouble), axis=1),
        softmax(moved.astype(np.longdouble), axis=1),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = float((P * (np.log(P) - np.log(Q))).sum(1).mean())
    if np.isfinite(kl) and exponent < 1.5:
        assert found.kl == pytest.approx(kl, rel=1e-5, abs=1e-18)
        expected = float(entropy(P.astype(float), axis=1).mean()) + kl
        assert found.cross_entropy == pytest.approx(expected, rel=1e-9)
    assert found.mse == pytest.approx(float(((P - Q) ** 2).mean()), rel=1e-9)
    assert found.kl >= 0 and np.isfinite(found.kl)


def test_shares_and_temperature():
    Z = np.array([[1000.0, 0.0], [0.0, 1000.0]])
    assert concept_shares(Z).tolist() == [0.5, 0.5]
    apart = dynamics.compare_logits(Z[::-1], Z)
    assert apart.kl == pytest.approx(1000) and apart.correlation == pytest.approx(-1)
    assert dynamics.compare_logits(Z[::-1], Z, temperature=1000.0).kl < 1
    assert dynamics.compare_logits(np.ones((3, 2)), np.ones((3, 2))).correlation == 0
    assert og.dynamics.encode is dynamics.encode


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"match": "greedy"}, ArgumentError, "match must be None"),
        ({"temperature": 0.0}, ArgumentError, "temperature"),
        ({"U_test_ref": np.ones((5, 2))}, ArgumentError, "U_test_ref must have shape"),
        ({"A_test": np.ones((5, 3))}, ArgumentError, "features as in the fit"),
        ({"A_test": np.full((200, 12), np.inf)}, NonFiniteError, "A holds"),
        ({"norms": "l1"}, TypeError, "norms"),
    ],
)
def test_bad_arguments_are_refused(change, error, message):
    activations, U = _run()
    A = activations(0.5)
    arguments = {
        "A_train": A[:400],
        "A_test": A[400:],
        "U_train_ref": U[:400],
        "U_test_ref": U[400:],
        **change,
    }
    with pytest.raises(error, match=message):
        dynamics.encode(**arguments)
