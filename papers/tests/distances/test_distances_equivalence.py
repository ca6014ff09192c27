"""Equivalence of codes and dictionaries together (Definitions 31 to 34 and 54)."""

import itertools

import numpy as np
import pytest
import torch

from helpers.planted_transforms import GROUPS, planted_transform
from ontogeny import concepts, distances
from ontogeny.errors import ArgumentError

_rng = np.random.default_rng(3)
U, X = _rng.standard_normal((2, 15, 4))
W, V = _rng.standard_normal((2, 8, 4))

# Rounding (2e-16) times the condition number of normal equations (some thousands here), whose last
# digits depend on the order in which a processor adds: 1e-12 was too tight for some.
ROUNDING = 1e-10


def _residuals(found):
    return max(found.dictionary, found.codes)


@pytest.mark.parametrize("under", GROUPS)
def test_planted_pairs_are_equivalent_and_their_transformation_is_found(under):
    R = planted_transform(under, np.random.default_rng(4))
    found = distances.equivalence(U, W, U @ R, W @ np.linalg.inv(R).T, under)
    assert _residuals(found) < ROUNDING
    np.testing.assert_allclose(found.transform, R.T, atol=ROUNDING)


@pytest.mark.parametrize("under", GROUPS)
def test_equivalent_dictionaries_with_codes_that_do_not_follow_are_no_equivalent_pair(
    under,
):
    R = planted_transform(under, np.random.default_rng(5))
    assert distances.alignment_residual(W, W @ np.linalg.inv(R).T, under) < ROUNDING
    assert (
        _residuals(distances.equivalence(U, W, U, W @ np.linalg.inv(R).T, under)) > 0.1
    )


@pytest.mark.parametrize("under", ["permutation", "scaled-permutation"])
def test_equal_directions_are_told_apart_by_their_codes(under):
    twins = W.copy()
    twins[:, 1] = twins[:, 0]
    order = [1, 0, 2, 3]
    found = distances.equivalence(U, twins, U[:, order], twins[:, order], under)
    assert _residuals(found) < ROUNDING


def _loss(T):
    return np.linalg.norm(W - V @ T) ** 2 / np.linalg.norm(W) ** 2 + (
        np.linalg.norm(X - U @ T.T) ** 2 / np.linalg.norm(X) ** 2
    )


def test_each_group_reaches_its_minimum():
    found = {
        under: _loss(distances.equivalence(U, W, X, V, under).transform)
        for under in GROUPS
    }
    orders = [np.eye(4)[:, list(o)] for o in itertools.permutations(range(4))]
    signs = [np.diag(s) for s in itertools.product([1.0, -1.0], repeat=4)]
    assert found["permutation"] == pytest.approx(min(map(_loss, orders)))
    assert found["sign"] == pytest.approx(min(map(_loss, signs)))
    assert found["signed-permutation"] == pytest.approx(
        min(_loss(o @ s) for o in orders for s in signs)
    )

    def scaled(order):  # the best diagonal factor, by least squares over both equations
        a, b = np.linalg.norm(W), np.linalg.norm(X)
        columns = []
        for i in range(4):
            j = int(np.argmax(order[:, i]))
            y, z = np.r_[W[:, i] / a, X[:, j] / b], np.r_[V[:, j] / a, U[:, i] / b]
            columns.append(np.linalg.lstsq(z[:, None], y)[0][0])
        return order @ np.diag(columns)

    assert found["scaling"] == pytest.approx(_loss(scaled(np.eye(4))))
    assert found["scaled-permutation"] == pytest.approx(
        min(_loss(scaled(o)) for o in orders)
    )
    rows = [
        np.kron(V / np.linalg.norm(W), np.eye(4)),
        np.kron(np.eye(4), U / np.linalg.norm(X)),
    ]
    goal = np.r_[(W / np.linalg.norm(W)).ravel(), (X / np.linalg.norm(X)).T.ravel()]
    T = np.linalg.lstsq(np.vstack(rows), goal)[0].reshape(4, 4)
    assert found["invertible"] == pytest.approx(_loss(T))
    assert found["invertible"] <= found["rotation"] <= found["signed-permutation"]


def test_residuals_are_those_of_the_transformation_and_batches_keep_their_kind():
    one = distances.equivalence(U, W, X, V, "invertible")
    assert one.dictionary == pytest.approx(
        np.linalg.norm(W - V @ one.transform) / np.linalg.norm(W)
    )
    assert one.codes == pytest.approx(
        np.linalg.norm(X - U @ one.transform.T) / np.linalg.norm(X)
    )
    stacks = [torch.tensor(np.stack([a, 3 * a])) for a in (U, W, X, V)]
    both = distances.equivalence(*stacks, "invertible")
    assert both.transform.shape == (2, 4, 4) and both.codes.dtype == torch.float64
    assert both.codes[0].item() == pytest.approx(one.codes)


def test_a_canonical_form_is_equivalent_to_what_it_was_made_of():
    Z, D = concepts.canonical_form(U, W, "ica")
    assert (
        _residuals(distances.equivalence(U, W, Z, D, "signed-permutation")) < ROUNDING
    )
    assert _residuals(distances.equivalence(U, W, Z, D, "sign")) > 0.1


def test_refusals():
    with pytest.raises(ArgumentError, match="U must have shape"):
        distances.equivalence(U[:, :3], W, X, V)
    with pytest.raises(ArgumentError, match="U and X must have the same shape"):
        distances.equivalence(U[:5], W, X, V)
    with pytest.raises(ArgumentError, match="X is zero"):
        distances.equivalence(U, W, 0 * X, V)
    with pytest.raises(ArgumentError, match="under"):
        distances.equivalence(U, W, X, V, "turned")
