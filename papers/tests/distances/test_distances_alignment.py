"""Alignment and matchings."""

import itertools

import numpy as np
import pytest
import torch

from helpers.planted_transforms import GROUPS, planted_transform
from ontogeny import distances
from ontogeny.errors import ArgumentError

_rng = np.random.default_rng(11)
W, V = _rng.standard_normal((2, 8, 4))


@pytest.mark.parametrize("under", GROUPS)
def test_a_planted_transformation_is_undone(under):
    rng = np.random.default_rng(1)
    planted = planted_transform(under, rng)
    aligned, transform = distances.align(W, W @ planted, under=under)
    np.testing.assert_allclose(aligned, W, atol=1e-10)
    np.testing.assert_allclose(transform, np.linalg.inv(planted), atol=1e-10)


@pytest.mark.parametrize("under", GROUPS)
def test_the_residual_tells_an_equivalent_dictionary_from_another(under):
    rng = np.random.default_rng(2)
    assert (
        distances.alignment_residual(W, W @ planted_transform(under, rng), under)
        < 1e-10
    )
    aligned = distances.align(W, V, under).aligned
    share = np.linalg.norm(W - aligned) / np.linalg.norm(W)
    assert distances.alignment_residual(W, V, under) == pytest.approx(share)
    assert share > 0.1


def _signed_permutations():
    for order in itertools.permutations(range(4)):
        for signs in itertools.product([1.0, -1.0], repeat=4):
            yield V[:, order] * np.array(signs)


def test_discrete_alignments_reach_the_exhaustive_minimum():
    found = {
        under: np.linalg.norm(W - distances.align(W, V, under)[0]) for under in GROUPS
    }
    signed = min(np.linalg.norm(W - X) for X in _signed_permutations())
    plain = min(
        np.linalg.norm(W - V[:, list(o)]) for o in itertools.permutations(range(4))
    )
    assert found["signed-permutation"] == pytest.approx(signed)
    assert found["permutation"] == pytest.approx(plain)
    # Larger groups come at least as near.
    assert found["signed-permutation"] <= min(found["sign"], found["permutation"])
    assert found["scaled-permutation"] <= min(
        found["scaling"], found["signed-permutation"]
    )
    assert found["rotation"] <= found["signed-permutation"]
    assert found["invertible"] <= min(found["rotation"], found["scaled-permutation"])


def test_scaled_matching_reaches_the_exhaustive_minimum():
    def residual(order):
        X = V[:, list(order)]
        return np.linalg.norm(W - X * (np.sum(W * X, axis=0) / np.sum(X * X, axis=0)))

    best = min(residual(order) for order in itertools.permutations(range(4)))
    aligned = distances.align(W, V, "scaled-permutation").aligned
    assert np.linalg.norm(W - aligned) == pytest.approx(best)


def test_rotation_and_invertible_alignment_meet_procrustes_and_least_squares():
    aligned = distances.align(W, V, "rotation").aligned
    assert np.linalg.norm(W - aligned) == pytest.approx(
        distances.procrustes(W, V), rel=1e-10
    )
    transform = distances.align(W, V, "invertible").transform
    np.testing.assert_allclose(transform, np.linalg.lstsq(V, W)[0], atol=1e-10)
    deficient = V * np.array([1.0, 1.0, 0.0, 1.0])
    assert np.isfinite(distances.align(W, deficient, "invertible").transform).all()


def test_codes_follow_so_that_the_product_stays():
    rng = np.random.default_rng(3)
    U = rng.standard_normal((20, 4))
    aligned, transform = distances.align(W, V, "scaled-permutation")
    np.testing.assert_allclose(
        U @ np.linalg.inv(transform).T @ aligned.T, U @ V.T, atol=1e-10
    )


def test_zero_columns_survive_alignment():
    hollow = V * np.array([1.0, 0.0, 1.0, 1.0])
    for under in GROUPS:
        aligned, transform = distances.align(W, hollow, under)
        assert np.isfinite(aligned).all() and np.isfinite(transform).all()


@pytest.mark.parametrize("under", GROUPS)
def test_alignment_of_batched_tensors_keeps_kind_and_dtype(under):
    first, second = torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4)
    aligned, transform = distances.align(first, second, under)
    assert aligned.dtype == torch.float32 and aligned.shape == (2, 3, 8, 4)
    single = distances.align(first[1, 2].numpy(), second[1, 2].numpy(), under)
    np.testing.assert_allclose(transform[1, 2], single.transform, atol=1e-5)


def test_an_unknown_group_is_refused_with_a_suggestion():
    with pytest.raises(ArgumentError, match="Did you mean 'permutation'"):
        distances.align(W, V, "permutations")


def test_correlations_by_hand():
    first = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    second = np.array([[0.0, -3.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    codes = np.array([[3.0, 0.0, 5.0], [-3.0, 2.0, 5.0]])
    # Third column of `first` is zero: cosine 0 with everything, never NaN.
    assert distances.correlation("columnwise", first, second) == 0.0
    assert distances.correlation("optimal", first, second) == pytest.approx(2 / 3)
    weighted = distances.correlation("weighted", first, second, U=codes)
    assert weighted == pytest.approx((6 + 2) / 18)
    assert distances.correlation(
        "weighted", first, second, U=0 * codes
    ) == pytest.approx(2 / 3)
    triangle = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    # Best derangement of three columns: a cycle that meets cos 0, 1/sqrt 2, 1/sqrt 2.
    assert distances.correlation("internal", triangle) == pytest.approx(
        2 / 3 / np.sqrt(2)
    )


def test_optimal_and_internal_matchings_are_exhaustively_best():
    rng = np.random.default_rng(4)
    first, second = rng.standard_normal((2, 6, 5))
    units = [x / np.linalg.norm(x, axis=0) for x in (first, second)]
    cross, inner = abs(units[0].T @ units[1]), abs(units[0].T @ units[0])
    orders = [np.array(o) for o in itertools.permutations(range(5))]
    best = max(cross[np.arange(5), o].mean() for o in orders)
    deranged = max(
        inner[np.arange(5), o].mean() for o in orders if (o != np.arange(5)).all()
    )
    assert distances.correlation("optimal", first, second) == pytest.approx(best)
    assert distances.correlation("internal", first, second) == pytest.approx(deranged)


def test_correlations_refuse_what_does_not_fit():
    with pytest.raises(ArgumentError, match="needs the codes U"):
        distances.correlation("weighted", W, V)
    with pytest.raises(ArgumentError, match="takes no U"):
        distances.correlation("optimal", W, V, U=np.ones((3, 4)))
    with pytest.raises(ArgumentError, match=r"U must have shape \('n', 4\)"):
        distances.correlation("weighted", W, V, U=np.ones((3, 5)))
    with pytest.raises(ArgumentError, match="only one"):
        distances.correlation("internal", W[:, :1])
    with pytest.raises(ArgumentError, match="needs both"):
        distances.correlation("optimal", W)
