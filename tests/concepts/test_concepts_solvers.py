"""The steps that the solvers are made of do what their formulas say."""

import numpy as np
import pytest
import scipy.optimize
import torch

from ontogeny.concepts import SemiNMF
from ontogeny.concepts.halfspace import best_half_space
from ontogeny.concepts.ica import decorrelate
from ontogeny.concepts.rows import Factor, sweep


def problem(r: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    F = rng.normal(size=(r, r + 3))
    return rng.uniform(size=(r, p)), F @ F.T, 5 * rng.normal(size=(r, p))


def in_turn(X, G, B, kind, penalty):
    """Coordinate descent over the rows, written down plainly."""
    X = X.copy()
    for k in range(len(X)):
        row = X[k] + (B[k] - G[k] @ X) / G[k, k]
        if kind == "nonnegative":
            row = np.maximum(row, 0)
        elif kind == "sparse":
            row = np.sign(row) * np.maximum(np.abs(row) - penalty / G[k, k], 0)
        elif kind == "ball":
            row = row / max(1, np.linalg.norm(row))
        X[k] = row
    return X


@pytest.mark.parametrize("kind", ["nonnegative", "sparse", "ball", "free"])
@pytest.mark.parametrize("r", [5, 47])  # less than a block, and several
def test_a_sweep_is_coordinate_descent_over_the_rows(kind, r):
    X, G, B = problem(r, 11)
    rule = Factor(kind, torch.tensor(2.0).double() if kind == "sparse" else None)
    expected = in_turn(in_turn(X, G, B, kind, 2.0), G, B, kind, 2.0)
    found = sweep(*map(torch.tensor, (X, G, B)), rule, times=2).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_sweep_leaves_the_codes_of_a_concept_that_is_zero():
    X, G, B = problem(4, 6)
    G[2] = G[:, 2] = B[2] = 0
    found = sweep(*map(torch.tensor, (X, G, B)), Factor("nonnegative"), times=3).numpy()
    np.testing.assert_array_equal(found[2], X[2])
    assert not np.array_equal(found, X)


def fitted_semi(A, **options):
    return SemiNMF(8, **options).fit(A)


@pytest.mark.parametrize("r", [2, 3, 4, 5])
def test_a_half_space_costs_at_most_half_of_the_last_singular_direction(r):
    """Of the two signs of that direction, one leaves at most half of its energy wrong."""
    A = np.random.default_rng(3).normal(size=(40, 6)) * [4, 3, 2, 1, 0.6, 0.4]
    A -= A.mean(axis=0)
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    found = best_half_space(torch.tensor(A), r, start=None, max_iter=200, tol=1e-5)
    error = (A**2).sum() - found.energy() + found.wrong()
    assert squares[r:].sum() <= error <= squares[r:].sum() + squares[r - 1] / 2


def test_codes_of_a_half_space_are_the_best_that_its_direction_allows():
    """Against scipy's search over all directions of the same subspace."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(200, 6))
    found = best_half_space(torch.tensor(A), 3, start=None, max_iter=1000, tol=0)
    codes = found.Y.numpy()

    def wrong(z):
        return np.square(np.minimum(codes @ (z / np.linalg.norm(z)), 0)).sum()

    best = min(scipy.optimize.minimize(wrong, z).fun for z in rng.normal(size=(30, 3)))
    assert wrong(found.z.numpy()) <= best * (1 + 1e-2)


def test_factors_of_a_half_space_are_nonnegative_and_nearly_its_projected_codes():
    rng = np.random.default_rng(3)
    A = torch.tensor(rng.normal(size=(300, 12)))
    found = best_half_space(A, 5, start=None, max_iter=100, tol=1e-4)
    U, W = found.factors()
    inside = found.Y - (found.Y @ found.z).clamp(max=0)[:, None] * found.z
    assert bool((U >= 0).all())
    np.testing.assert_allclose(found.V.mT @ found.V, np.eye(5), atol=1e-10)
    away = torch.linalg.norm(U.mT @ W - inside @ found.V.mT)
    assert float(away) < 0.1 * float(torch.linalg.norm(found.Y @ found.z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_semi_nmf_of_noise_lies_well_below_the_svd_of_rank_r_minus_1(dtype):
    A = np.random.default_rng(1).normal(size=(600, 40)).astype(dtype)
    values = np.linalg.svd(A, compute_uv=False).astype(float) ** 2
    error = fitted_semi(A).reconstruction_error_ ** 2
    # Half of what the last concept explains is lost where its codes lie on both sides alike.
    assert values[8:].sum() < error < values[8:].sum() + 0.55 * values[7]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factor", [3.0, 0.7, 1.7e-3])
def test_semi_nmf_of_rescaled_noise_is_the_same_solution(dtype, factor):
    A = np.random.default_rng(0).normal(size=(600, 40)).astype(dtype)
    plain, scaled = fitted_semi(A), fitted_semi(A * dtype(factor))
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-3)
    np.testing.assert_allclose(scaled.relative_error_, plain.relative_error_, rtol=1e-5)


def test_a_warm_semi_nmf_stays_at_its_own_solution_and_keeps_the_order_of_its_concepts():
    rng = np.random.default_rng(4)
    A = np.random.default_rng(0).normal(size=(600, 40))
    cold = fitted_semi(A)
    shuffled = cold.components_[rng.permutation(8)]
    warm = SemiNMF(8).fit(A, init_dictionary=shuffled.T)
    assert warm.relative_error_ <= cold.relative_error_ * (1 + 1e-4)
    assert warm.n_iter_ <= cold.n_iter_
    np.testing.assert_allclose((warm.components_ * shuffled).sum(1), 1, atol=1e-3)


def test_a_warm_semi_nmf_continues_concepts_at_a_neighbouring_matrix():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(600, 8)) @ (
        rng.normal(size=(8, 40)) * np.linspace(3, 1, 8)[:, None]
    )
    A, near = A + 0.1 * rng.normal(size=A.shape), A + 0.1 * rng.normal(size=A.shape)
    first, cold = fitted_semi(near), fitted_semi(A)
    warm = SemiNMF(8).fit(A, init_dictionary=first.components_.T)
    assert warm.relative_error_ <= cold.relative_error_ * (1 + 1e-3)
    assert (warm.components_ * first.components_).sum(1).min() > 0.99


def test_semi_nmf_takes_up_a_dictionary_that_is_not_its_own():
    A = np.random.default_rng(0).normal(size=(200, 40))
    given = np.random.default_rng(1).normal(size=(8, 40))
    warm = SemiNMF(8, max_iter=300).fit(A, init_dictionary=given.T)
    assert warm.relative_error_ < 1.02 * fitted_semi(A).relative_error_


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decades", [0, 1, 2, 3, 4, 6])
def test_decorrelation_is_the_polar_factor_whatever_the_condition(dtype, decades):
    rng = np.random.default_rng(5)
    U, _, V = np.linalg.svd(rng.normal(size=(30, 30)))
    Q = torch.tensor(U * np.logspace(0, -decades, 30) @ V, dtype=dtype)
    found = decorrelate(Q)
    eps = torch.finfo(dtype).eps
    np.testing.assert_allclose(found @ found.mT, np.eye(30), atol=100 * eps)
    # The factor itself is as uncertain as the condition says.
    np.testing.assert_allclose(
        found, U @ V, atol=min(2.0, 300 * eps * 10.0 ** (2 * decades))
    )
