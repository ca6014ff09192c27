"""Ranks of matrices and angles of subspaces against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.stats import entropy

from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.geometry import (
    effective_rank,
    participation_ratio,
    principal_angles,
    singular_value_rank,
    stable_rank,
)

RANKS = [effective_rank, stable_rank, participation_ratio, singular_value_rank]


def matrix_with(
    spectrum: list[float], shape: tuple[int, int], seed: int = 0
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    count = len(spectrum)
    left, right = (np.linalg.qr(rng.normal(size=(n, count)))[0] for n in shape)
    return left @ np.diag(spectrum) @ right.T


def test_ranks_of_a_known_spectrum_match_their_definitions():
    spectrum = [4.0, 2.0, 1.0, 0.5]
    energy = np.square(spectrum)
    A = matrix_with(spectrum, (9, 6))
    assert effective_rank(A) == pytest.approx(np.exp(entropy(spectrum)))
    assert stable_rank(A) == pytest.approx(energy.sum() / 16)
    assert participation_ratio(A) == pytest.approx(
        energy.sum() ** 2 / (energy**2).sum()
    )
    assert singular_value_rank(A, 0.9) == 2 and singular_value_rank(A, 0.95) == 3


@pytest.mark.parametrize("rank", RANKS)
@given(st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=20)
def test_ranks_lie_between_one_and_the_rank_and_do_not_see_scale_or_side(
    rank, count, seed
):
    spectrum = np.random.default_rng(seed).uniform(0.1, 1, count)
    A = matrix_with(list(spectrum), (8, 7), seed)
    value = rank(A)
    assert 1 <= value <= count + 1e-9
    assert rank(A.T) == pytest.approx(value) == rank(spectrum=spectrum)
    for scale in (1e-200, 1e150):
        assert rank(scale * A) == pytest.approx(value)


@pytest.mark.parametrize("rank", RANKS)
def test_equal_singular_values_count_fully_and_zero_matrices_not_at_all(rank):
    assert rank(torch.eye(10)) == pytest.approx(
        9 if rank is singular_value_rank else 10
    )
    assert rank(np.zeros((3, 2))) == 0


def test_singular_value_rank_of_a_square_gaussian_matrix():
    A = np.random.default_rng(0).normal(size=(128, 128))
    assert singular_value_rank(A) == pytest.approx(65, abs=2)


@pytest.mark.parametrize("rank", RANKS)
def test_rank_arguments_are_checked(rank):
    with pytest.raises(ArgumentError, match="either a matrix or spectrum="):
        rank()
    with pytest.raises(ArgumentError, match="either a matrix or spectrum="):
        rank(np.eye(2), spectrum=[1.0])
    with pytest.raises(ArgumentError, match="no negative number"):
        rank(spectrum=[1.0, -1.0])
    with pytest.raises(NonFiniteError, match="A holds 1 NaN"):
        rank(np.array([[1.0, np.nan]]))


def planes_at(
    angles: list[float], m: int = 40, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Two subspaces of R^m with these principal angles, in skewed bases."""
    rng = np.random.default_rng(seed)
    k = len(angles)
    Q = np.linalg.qr(rng.normal(size=(m, 2 * k)))[0]
    V = Q[:, :k] * np.cos(angles) + Q[:, k:] * np.sin(angles)
    return Q[:, :k] @ rng.normal(size=(k, k)), V @ rng.normal(size=(k, k))


@pytest.mark.parametrize(
    "angles",
    [[1e-10, 0.9, 1.5], [1e-9, 1e-3, 0.5, 1.3], [0.2, np.pi / 2], [1e-7, 1e-6]],
)
def test_principal_angles_are_right_from_tiny_to_right_angles(angles):
    found = principal_angles(*planes_at(angles))
    np.testing.assert_allclose(found, angles, rtol=1e-9, atol=2e-14)


def test_principal_angles_agree_with_scipy_where_that_is_accurate():
    rng = np.random.default_rng(0)
    W, V = rng.normal(size=(30, 4)), rng.normal(size=(30, 7))
    np.testing.assert_allclose(
        principal_angles(W, V), subspace_angles(W, V)[::-1], atol=1e-7
    )
    np.testing.assert_allclose(
        principal_angles(W, V), principal_angles(V, W), atol=1e-13
    )


def test_equal_and_contained_subspaces_have_angles_of_zero():
    W = np.random.default_rng(0).normal(size=(20, 5))
    assert np.all(principal_angles(W, 1e8 * W[:, :3] + 0) < 1e-14)
    doubled = np.hstack([W, W[:, :2] - W[:, 2:4]])
    assert principal_angles(W, doubled).shape == (5,)


def test_principal_angles_keep_kind_and_dtype_and_judge_rank_by_it():
    W, V = planes_at([0.1, 0.7])
    single = torch.from_numpy(np.hstack([W, W[:, :1] + W[:, 1:]])).float()
    found = principal_angles(single, torch.from_numpy(V).float())
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float32
    np.testing.assert_allclose(found, [0.1, 0.7], atol=1e-6)


def test_random_subspaces_have_the_mean_squared_cosine_of_the_docstring():
    rng = np.random.default_rng(0)
    squares = [
        np.cos(principal_angles(rng.normal(size=(60, 3)), rng.normal(size=(60, 8))))
        ** 2
        for _ in range(300)
    ]
    error = np.std([s.mean() for s in squares]) / np.sqrt(300)
    assert np.mean(squares) == pytest.approx(8 / 60, abs=5 * error)


@pytest.mark.parametrize(
    ("W", "V", "words"),
    [
        (np.ones((3, 1)), np.ones((4, 1)), "equally many rows"),
        (np.zeros((3, 1)), np.ones((3, 1)), "W is zero"),
        (np.ones((3, 1)), np.zeros((3, 2)), "V is zero"),
        (np.ones((3, 1)), np.ones(3), "V must have 2 dimensions"),
    ],
)
def test_subspaces_that_do_not_fit_are_refused(W, V, words):
    with pytest.raises(ArgumentError, match=words):
        principal_angles(W, V)
