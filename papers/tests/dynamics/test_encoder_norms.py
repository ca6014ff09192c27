"""Linear encoders: every norm against closed forms and other solvers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import Ridge

from ontogeny import dynamics
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.dynamics.least_norm import ENCODER_NORMS
from ontogeny_papers.dynamics.residual_norms import NORMS, matrix_norm


def _data(n=40, m=4, r=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, m))
    return A, A @ rng.normal(size=(m, r)) + noise * rng.laplace(size=(n, r))


def _linear_program(A, U, norm):
    """Return the least norm of U - A E by SciPy's LP solver."""
    (n, m), r = A.shape, U.shape[1]
    kron = np.kron(np.eye(r), A)  # columns of E stacked
    target = U.T.ravel()
    if norm in ("l1", "induced-l1"):
        slacks, tops = n * r, (r if norm == "induced-l1" else 0)
    elif norm == "induced-linf":
        slacks, tops = n * r, 1
    else:
        slacks, tops = 0, 1
    size = m * r + slacks + tops
    rows, bounds = [], []
    bound = np.zeros((n * r, size))
    bound[:, m * r : m * r + slacks] = np.eye(slacks) if slacks else 0
    if not slacks:
        bound[:, -1] = 1
    for sign in (1, -1):
        block = -bound.copy()
        block[:, : m * r] = sign * kron
        rows.append(block)
        bounds.append(sign * target)
    cost = np.zeros(size)
    if norm == "l1":
        cost[m * r :] = 1
    elif norm == "induced-l1":
        sums = np.zeros((r, size))
        for j in range(r):
            sums[j, m * r + j * n : m * r + (j + 1) * n] = 1
        sums[:, m * r + slacks :] = -1  # all tops equal the largest; use one
        sums[:, m * r + slacks + 1 :] = 0
        rows.append(sums)
        bounds.append(np.zeros(r))
        cost[m * r + slacks] = 1
    elif norm == "induced-linf":
        sums = np.zeros((n, size))
        for i in range(n):
            sums[i, [m * r + j * n + i for j in range(r)]] = 1
        sums[:, -1] = -1
        rows.append(sums)
        bounds.append(np.zeros(n))
        cost[-1] = 1
    else:
        cost[-1] = 1
    free = [(None, None)] * (m * r) + [(0, None)] * (slacks + tops)
    found = linprog(
        cost, np.vstack(rows), np.concatenate(bounds), bounds=free, method="highs"
    )
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("norm", ["l1", "linf", "induced-l1", "induced-linf"])
@pytest.mark.parametrize("seed", [0, 1])
def test_polyhedral_norms_reach_the_linear_programs_optimum(norm, seed):
    A, U = _data(25, 3, 3, seed)
    found = dynamics.fit_encoder(A, U, norm, tol=1e-4, max_iter=20000)
    least = _linear_program(A, U, norm)
    assert found.converged and found.gap <= 1e-4
    assert least * (1 - 1e-9) <= found.error <= least * (1 + 2e-3)
    assert found.error == pytest.approx(
        matrix_norm(U - A @ found.matrix, norm), rel=1e-9
    )
    assert found.error <= matrix_norm(U - A @ np.linalg.lstsq(A, U)[0], norm) + 1e-9


def test_least_squares_equals_numpys_and_serves_every_unitarily_invariant_norm():
    A, U = _data()
    expected = np.linalg.lstsq(A, U)[0]
    for norm in ("fro", "nuclear", "2"):
        np.testing.assert_allclose(
            dynamics.fit_encoder(A, U, norm).matrix, expected, atol=1e-12
        )
    rng = np.random.default_rng(3)
    for norm in ("nuclear", "2"):  # no other encoder does better
        best = dynamics.fit_encoder(A, U, norm).error
        for size in (1e-3, 1e-1, 1):
            other = expected + size * rng.normal(size=expected.shape)
            assert matrix_norm(U - A @ other, norm) >= best - 1e-9


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_equals_scikit_learns(intercept):
    A, U = _data()
    A, U = A + 3, U - 2
    oracle = Ridge(alpha=0.7, fit_intercept=intercept).fit(A, U)
    found = dynamics.fit_encoder(A, U, ridge=0.7, intercept=intercept)
    np.testing.assert_allclose(found.matrix, oracle.coef_.T, atol=1e-10)
    np.testing.assert_allclose(found.predict(A), oracle.predict(A), atol=1e-10)


@pytest.mark.parametrize("norm", [n for n in ENCODER_NORMS if n != "fro"])
def test_a_penalised_fit_is_a_minimum(norm):
    A, U = _data(30, 3, 2, seed=4)
    ridge = 2.0
    found = dynamics.fit_encoder(A, U, norm, ridge=ridge, tol=1e-5, max_iter=20000)
    assert found.converged
    value = NORMS[norm].value

    def objective(E):
        return value(U - A @ E).sum() + ridge / 2 * (E**2).sum()

    rng = np.random.default_rng(0)
    best = objective(found.matrix)
    for size in (1e-3, 1e-2, 0.1, 1):
        for _ in range(20):
            other = found.matrix + size * rng.normal(size=found.matrix.shape)
            assert objective(other) >= best * (1 - 2e-5)
    free = dynamics.fit_encoder(A, U, norm, tol=1e-4)
    assert np.linalg.norm(found.matrix) < np.linalg.norm(free.matrix)


@pytest.mark.parametrize("norm", ENCODER_NORMS)
def test_dependent_features_do_not_blow_up(norm):
    A, U = _data(60, 4, 2)
    doubled = np.concatenate([A, A[:, :2] + 1e-15, np.zeros((60, 1))], axis=1)
    whole = dynamics.fit_encoder(A, U, norm)
    found = dynamics.fit_encoder(doubled, U, norm)
    assert found.rank == 4
    assert np.abs(found.matrix).max() < 10
    assert found.error == pytest.approx(whole.error, rel=5e-3)


@pytest.mark.parametrize("norm", ENCODER_NORMS)
def test_an_exact_fit_and_zero_codes_converge(norm):
    A, _ = _data()
    U = A @ np.ones((4, 2))
    found = dynamics.fit_encoder(A, U, norm)
    assert found.converged and found.relative_error < 1e-9
    zero = dynamics.fit_encoder(A, 0 * U, norm)
    assert zero.converged and zero.error == 0 and not zero.matrix.any()
    nothing = dynamics.fit_encoder(0 * A, U, norm)
    assert (
        nothing.rank == 0 and not nothing.matrix.any() and nothing.relative_error == 1
    )


@settings(max_examples=25)
@given(st.sampled_from(sorted(NORMS)), st.floats(0.05, 20), st.integers(0, 10**6))
def test_the_proximal_map_and_the_dual_norm_belong_to_the_norm(name, step, seed):
    """Moreau: V - prox(V) lies in step times the dual ball and attains <V - R, R> = step f(R)."""
    norm = NORMS[name]
    V = np.random.default_rng(seed).normal(size=(7, 3))
    columns = 3 if norm.by_column else 1
    R = norm.prox(V, np.full(columns, step))
    Z = (V - R) / step
    assert (norm.dual(Z) <= 1 + 1e-9).all()
    assert (Z * R).sum() == pytest.approx(norm.value(R).sum(), abs=1e-9)


@settings(max_examples=15)
@given(st.integers(-120, 120), st.integers(-120, 120))
def test_units_of_activations_and_codes_only_rescale_the_encoder(a, u):
    A, U = _data(20, 3, 2)
    plain = dynamics.fit_encoder(A, U)
    scaled = dynamics.fit_encoder(A * 2.0**a, U * 2.0**u)
    np.testing.assert_allclose(scaled.matrix * 2.0 ** (a - u), plain.matrix, rtol=1e-9)
    assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-9)


def test_torch_comes_back_as_torch_and_float32_keeps_its_dtype():
    A, U = _data()
    found = dynamics.fit_encoder(torch.tensor(A).float(), torch.tensor(U).float(), "l1")
    assert found.matrix.dtype == torch.float32
    expected = dynamics.fit_encoder(A, U, "l1").matrix
    np.testing.assert_allclose(found.matrix.numpy(), expected, atol=0.02)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"norm": "l2"}, ArgumentError, "norm must be one of"),
        ({"ridge": -1.0}, ArgumentError, "ridge"),
        ({"ridge": float("nan")}, ArgumentError, "ridge"),
        ({"tol": 0.0}, ArgumentError, "tol"),
        ({"max_iter": 0}, ArgumentError, "max_iter"),
        ({"U": np.ones((3, 2))}, ArgumentError, "40 rows and U 3"),
        ({"A": np.full((40, 4), np.nan)}, NonFiniteError, "A holds 160"),
        ({"U": torch.ones(40, 2)}, ArgumentError, "all be NumPy or all be PyTorch"),
    ],
)
def test_bad_arguments_are_refused(change, error, message):
    A, U = _data()
    arguments = {"A": A, "U": U, **change}
    with pytest.raises(error, match=message):
        dynamics.fit_encoder(**arguments)


def test_what_does_not_converge_says_so():
    A, U = _data(200, 20, 3)
    found = dynamics.fit_encoder(A, U, "linf", max_iter=5)
    assert not found.converged and found.gap > 2e-3 and found.n_iter == 5
