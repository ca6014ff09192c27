"""CKA, SVCCA, PWCCA and the summaries of one matrix, against plain definitions."""

import numpy as np
import pytest
import torch
from sklearn.cross_decomposition import CCA

from ontogeny import distances
from ontogeny.errors import ArgumentError

_rng = np.random.default_rng(31)
X = _rng.standard_normal((40, 5))
Y = X @ _rng.standard_normal((5, 3)) + _rng.standard_normal((40, 3)) + 2.0


def _unbiased_hsic(K, L):
    n = len(K)
    K, L = (M - np.diag(np.diag(M)) for M in (K, L))
    one = np.ones(n)
    middle = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
    return (np.trace(K @ L) + middle - 2 / (n - 2) * one @ K @ L @ one) / (n * (n - 3))


def test_unbiased_cka_equals_its_kernel_definition():
    K, L = X @ X.T, Y @ Y.T
    truth = _unbiased_hsic(K, L) / np.sqrt(_unbiased_hsic(K, K) * _unbiased_hsic(L, L))
    assert distances.cka(X, Y) == pytest.approx(truth, rel=1e-10)


def test_plain_cka_equals_its_kernel_definition():
    H = np.eye(40) - 1 / 40
    K, L = H @ X @ X.T @ H, H @ Y @ Y.T @ H
    truth = np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L))
    assert distances.cka(X, Y, unbiased=False) == pytest.approx(truth, rel=1e-10)


def test_unbiased_cka_of_unrelated_wide_data_is_near_zero_where_the_plain_one_is_not():
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((2, 30, 300))
    assert abs(distances.cka(first, second)) < 0.1
    assert distances.cka(first, second, unbiased=False) > 0.8


def test_svcca_with_all_components_is_scikit_learns_cca():
    model = CCA(n_components=3, max_iter=5000, tol=1e-12).fit(X, Y)
    scores = model.transform(X, Y)
    truth = [
        abs(np.corrcoef(a, b)[0, 1])
        for a, b in zip(scores[0].T, scores[1].T, strict=True)
    ]
    assert distances.svcca(X, Y, variance=1.0) == pytest.approx(
        np.mean(truth), abs=1e-5
    )


def test_svcca_looks_at_leading_components_only():
    rng = np.random.default_rng(2)
    shared = rng.standard_normal((40, 2))
    first = np.hstack([10 * shared, 0.01 * rng.standard_normal((40, 3))])
    second = np.hstack([10 * shared, 0.01 * rng.standard_normal((40, 3))])
    assert distances.svcca(first, second) == pytest.approx(1.0, abs=1e-4)
    assert distances.svcca(first, second, variance=1.0) < 0.9


def test_pwcca_weighs_canonical_directions_by_what_they_hold_of_x():
    rng = np.random.default_rng(3)
    # Orthonormal, centred directions: the canonical correlations are known.
    basis = np.linalg.qr(rng.standard_normal((40, 7)) - 0.0)[0]
    basis = np.linalg.qr(basis - basis.mean(axis=0))[0][:, :6]
    first = basis[:, :2] * np.array([3.0, 1.0])
    second = np.stack([basis[:, 0], 0.6 * basis[:, 1] + 0.8 * basis[:, 3]], axis=1)
    assert distances.pwcca(first, second) == pytest.approx(
        (3 * 1 + 1 * 0.6) / 4, abs=1e-9
    )
    assert distances.svcca(first, second, variance=1.0) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize("measure", [distances.cka, distances.svcca, distances.pwcca])
def test_similarities_do_not_see_rotation_shift_and_scale(measure):
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    value = measure(X, Y)
    assert measure(X, 7.0 * Y @ turn + 5.0) == pytest.approx(value, rel=1e-9)
    assert measure(X, X) == pytest.approx(1.0)
    batch = measure(
        torch.tensor(np.stack([X, X])), torch.tensor(np.stack([Y, 3.0 - Y]))
    )
    np.testing.assert_allclose(batch, [value, value], rtol=1e-9)


def test_similarities_refuse_what_says_nothing():
    with pytest.raises(ArgumentError, match="same examples"):
        distances.cka(X, Y[:-1])
    with pytest.raises(ArgumentError, match="at least 4 examples"):
        distances.cka(X[:3], Y[:3])
    with pytest.raises(ArgumentError, match="all examples of Y are equal"):
        distances.svcca(X, np.full_like(Y, 0.1))
    with pytest.raises(ArgumentError, match=r"variance must be in \(0, 1\]"):
        distances.pwcca(X, Y, variance=0.0)


@pytest.mark.parametrize("of", [np.asarray, torch.tensor])
def test_mutual_neighbours_equal_a_loop_over_examples(of):
    shared = 0
    for at in range(40):
        near = []
        for Z in (X - X.mean(0), Y - Y.mean(0)):
            unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
            others = np.delete(np.arange(40), at)
            near.append(set(others[np.argsort(-unit[others] @ unit[at])[:6]].tolist()))
        shared += len(near[0] & near[1])
    assert distances.mutual_neighbours(of(X), of(Y), k=6) == pytest.approx(shared / 240)


def test_mutual_neighbours_of_unrelated_examples_are_as_many_as_by_chance():
    rng = np.random.default_rng(5)
    first, second = rng.standard_normal((2, 400, 5))
    assert distances.mutual_neighbours(first, second) == pytest.approx(
        10 / 399, abs=0.015
    )
    turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    assert distances.mutual_neighbours(first, 2 * first @ turn + 1) > 0.999


@pytest.mark.parametrize("k", [0, 39])
def test_mutual_neighbours_out_of_range_are_refused(k):
    with pytest.raises(ArgumentError, match="k must be a whole number"):
        distances.mutual_neighbours(X, Y, k=k)


def test_alignment_of_inner_products_is_that_of_the_representations():
    rng = np.random.default_rng(6)
    Z = rng.standard_normal((40, 6))
    grams = np.stack([each @ each.T for each in (X, Y, Z)])
    found = distances.cka_of_grams(grams)
    expected = [[distances.cka(a, b) for b in (X, Y, Z)] for a in (X, Y, Z)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    other = distances.cka_of_grams(torch.tensor(grams[:1]), torch.tensor(grams[1:]))
    np.testing.assert_allclose(other.numpy(), np.array(expected)[:1, 1:], atol=1e-12)


def test_inner_products_that_do_not_fit_are_refused():
    for wrong in (np.ones((2, 3, 3)), np.ones((1, 5, 4))):
        with pytest.raises(
            ArgumentError, match="inner products of the same n examples"
        ):
            distances.cka_of_grams(wrong)
    with pytest.raises(ArgumentError, match="all examples are equal"):
        distances.cka_of_grams(np.ones((1, 5, 5)))
