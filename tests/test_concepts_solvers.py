"""The steps that the solvers are made of do what their formulas say."""

import numpy as np
import pytest
import torch

from ontogeny.concepts.alternating import Factor, sweep

RNG = np.random.default_rng(0)


def problem(K: int, r: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    F = RNG.normal(size=(K, r, r + 3))
    return RNG.uniform(size=(K, r, p)), F @ F.swapaxes(1, 2), 5 * RNG.normal(size=(K, r, p))


def in_turn(X, G, B, kind, penalty):
    """Coordinate descent over the rows, written down plainly."""
    X = X.copy()
    for x, g, b, weight in zip(X, G, B, penalty, strict=True):
        for k in range(len(x)):
            row = x[k] + (b[k] - g[k] @ x) / g[k, k]
            if kind == "nonnegative":
                row = np.maximum(row - weight / g[k, k], 0)
            elif kind == "sparse":
                row = np.sign(row) * np.maximum(np.abs(row) - weight / g[k, k], 0)
            elif kind == "ball":
                row = row / max(1, np.linalg.norm(row))
            x[k] = row
    return X


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("kind", ["nonnegative", "sparse", "ball", "free"])
@pytest.mark.parametrize("r", [5, 47])  # less than a block, and several
def test_a_sweep_is_coordinate_descent_over_the_rows(K, kind, r):
    X, G, B = problem(K, r, 11)
    penalty = np.arange(1.0, K + 1) if kind == "sparse" else np.zeros(K)
    rule = Factor(kind, torch.tensor(penalty[:, None]) if kind == "sparse" else None)
    expected = in_turn(in_turn(X, G, B, kind, penalty), G, B, kind, penalty)
    found = sweep(*map(torch.tensor, (X, G, B)), rule, times=2).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_sweep_leaves_the_codes_of_a_concept_that_is_zero():
    X, G, B = problem(1, 4, 6)
    G[:, 2] = G[:, :, 2] = B[:, 2] = 0
    found = sweep(*map(torch.tensor, (X, G, B)), Factor("nonnegative"), times=3).numpy()
    np.testing.assert_array_equal(found[:, 2], X[:, 2])
    assert not np.array_equal(found, X)
