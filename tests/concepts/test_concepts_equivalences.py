"""Table 1: what may be done to a fitted (U, W) keeps its problem's value, all else breaks it."""

import numpy as np
import pytest
import torch
from scipy.linalg import block_diag

from ontogeny import concepts
from ontogeny.concepts import canonical_form, structure

R = 4
RNG = np.random.default_rng(0)
A = RNG.laplace(size=(300, 6)) @ (
    RNG.normal(size=(6, 12)) * np.arange(6, 0, -1)[:, None]
)
A = A + 0.3 * RNG.normal(size=A.shape) + 0.5
ALPHA = 3.0
OPTIONS = {
    "nmf": {"nonnegative": "relu"},
    "convex-nmf": {"strict_convex": False},
    "ica": {"max_iter": 2000, "tol": 1e-8},
    "dictionary": {"alpha": ALPHA},
    "sparse-pca": {"alpha": ALPHA},
}
INFEASIBLE = np.inf


@pytest.fixture(scope="module")
def fits():
    made = {}
    for name in concepts.names():
        est = concepts.make(name, R, **OPTIONS.get(name, {}))
        made[name] = est.fit_transform(A), est.components_.T, est
    return made


def near(x, y):
    return np.allclose(x, y, atol=1e-6 * max(1.0, np.abs(y).max()))


def has_unit_columns(W):
    return near(np.linalg.norm(W, axis=0), 1)


def descends(values):
    return bool((np.diff(values) <= 1e-9 * values[0]).all())


def half_square(name, est, U, W):
    target = np.maximum(A, 0) if name == "nmf" else A - est.offset_
    return ((target - U @ W.T) ** 2).sum() / 2


def is_feasible(name, U, W, H):
    """Return whether (U, W) keeps the constraints of the extractor's problem."""
    if name in ("svd", "pca"):
        G, D = U.T @ U, W.T @ W
        diagonal = near(G, np.diag(np.diag(G))) and near(D, np.diag(np.diag(D)))
        kept = near(G, D) if name == "svd" else near(D, np.eye(R))
        return diagonal and kept and descends(np.diag(G))
    rules = {
        "nmf": lambda: (U >= 0).all() and (W >= 0).all(),
        "convex-nmf": lambda: (U >= 0).all() and (H >= 0).all() and near(H @ A, W.T),
        "semi-nmf": lambda: (U >= 0).all(),
        "ica": lambda: near(U.T @ U / len(U), np.eye(R)),
        "kmeans": lambda: (
            set(np.unique(U)) <= {0.0, 1.0} and (U.sum(axis=1) == 1).all()
        ),
        "dictionary": lambda: has_unit_columns(W),
        "sparse-pca": lambda: has_unit_columns(W),
        "sae": lambda: has_unit_columns(W) and (U >= 0).all(),
    }
    return bool(rules[name]())


def value(name, est, U, W, H=None):
    """Return the objective of the extractor's problem, infinite where a constraint is broken."""
    if not is_feasible(name, U, W, H):
        return INFEASIBLE
    if name == "ica":
        return -((np.log(np.cosh(U)).mean(axis=0) - 0.374567) ** 2).sum()
    penalty = 0.0
    if name == "dictionary":
        penalty = ALPHA * np.abs(U).sum()
    if name == "sparse-pca":  # V = W scaled, with columns of U of unit norm
        penalty = ALPHA * np.abs(W * np.linalg.norm(U, axis=0)).sum()
    return half_square(name, est, U, W) + penalty


def transformed(est, U, W, M):
    """Return ``(U M, W M^-T, M^-1 H)``: the same product."""
    inverse = np.linalg.inv(M)
    H = inverse @ est.coefficients_ if hasattr(est, "coefficients_") else None
    return U @ M, W @ inverse.T, H


def assert_freedom(name, fits, M, *, allowed):
    U, W, est = fits[name]
    before = value(name, est, *transformed(est, U, W, np.eye(R)))
    assert np.isfinite(before), "the fit itself keeps the constraints"
    after = value(name, est, *transformed(est, U, W, M))
    if allowed:
        np.testing.assert_allclose(after, before, rtol=1e-9)
    else:
        assert after > before + 1e-4 * abs(before)


@pytest.mark.parametrize("name", concepts.names())
def test_permutation(name, fits):
    P = np.eye(R)[:, [2, 0, 3, 1]]
    assert_freedom(name, fits, P, allowed=structure(name).permutation)


@pytest.mark.parametrize("name", concepts.names())
def test_positive_scaling(name, fits):
    D = np.diag([0.5, 2.0, 1.5, 0.25])
    assert_freedom(name, fits, D, allowed=structure(name).scaling == "positive")


@pytest.mark.parametrize("name", concepts.names())
def test_sign_flips(name, fits):
    assert_freedom(
        name, fits, np.diag([1.0, -1.0, -1.0, 1.0]), allowed=structure(name).sign
    )


@pytest.mark.parametrize("name", concepts.names())
def test_no_extractor_is_free_to_rotate_everywhere(name, fits):
    Q = block_diag([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]], np.eye(2))
    assert_freedom(name, fits, Q, allowed=False)


def test_strict_convexity_takes_the_scaling_away():
    est = concepts.make("convex-nmf", R, strict_convex=True).fit(A)
    np.testing.assert_allclose(est.coefficients_.sum(axis=1), 1)
    free = concepts.make("convex-nmf", R, strict_convex=False).fit(A)
    assert not near(free.coefficients_.sum(axis=1), np.ones(R))


@pytest.mark.parametrize("name", ["svd", "pca"])
def test_repeated_singular_values_leave_a_rotation_open(name):
    """The other solution is as good, and only the canonical form's signs and order are fixed."""
    rng = np.random.default_rng(1)
    left = rng.normal(size=(50, 4))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(rng.normal(size=(8, 4)))[0]
    X = (left * [5, 3, 3, 1]) @ right.T
    est = concepts.make(name, 4)
    U, W = est.fit_transform(X), est.components_.T
    turn = np.eye(4)
    turn[1:3, 1:3] = [[0.6, -0.8], [0.8, 0.6]]
    V, Y = U @ turn, W @ turn
    np.testing.assert_allclose(V @ Y.T, U @ W.T, atol=1e-9)
    for G in (V.T @ V, Y.T @ Y):
        np.testing.assert_allclose(G, np.diag(np.diag(G)), atol=1e-9)
    assert np.abs(Y - W).max() > 0.1 and structure(name).rotation == "if repeated"
    turn = np.eye(4)
    turn[:2, :2] = [[0.6, -0.8], [0.8, 0.6]]  # not within equal singular values
    G = (U @ turn).T @ (U @ turn)
    assert np.abs(G - np.diag(np.diag(G))).max() > 0.5


def test_nmf_may_mix_concepts_as_far_as_no_entry_becomes_negative():
    rng = np.random.default_rng(2)
    U, W = rng.uniform(0.5, 1, size=(60, 3)), rng.uniform(0.5, 1, size=(10, 3))
    M = np.eye(3) + 0.1 * rng.uniform(size=(3, 3))
    V, Y = U @ M, W @ np.linalg.inv(M).T
    assert (
        (V >= 0).all()
        and (Y >= 0).all()
        and structure("nmf").rotation == "inside the orthant"
    )
    np.testing.assert_allclose(V @ Y.T, U @ W.T)
    first, second = canonical_form(U, W, "nmf")[1], canonical_form(V, Y, "nmf")[1]
    assert np.abs(first - second).max() > 1e-3, (
        "the canonical form does not undo a mixture"
    )


@pytest.mark.parametrize("name", concepts.names())
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_what_is_fitted_is_canonical(name, kind, fits):
    U, W, _ = fits[name]
    V, Y = canonical_form(kind(U), kind(W), name)
    np.testing.assert_allclose(np.asarray(Y), W, atol=1e-9)
    np.testing.assert_allclose(np.asarray(V), U, atol=1e-9 * np.abs(U).max())
