"""Transforms between dictionaries: planted maps are found and told apart."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny import dynamics
from ontogeny.errors import ArgumentError, NonFiniteError


def _reference(m=20, r=4, n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, r)), rng.normal(size=(n, r)), rng


def _rotation(rng, r):
    return np.linalg.qr(rng.normal(size=(r, r)))[0]


def test_a_planted_map_is_found_with_its_determinant_and_condition():
    W, U, rng = _reference()
    T = rng.normal(size=(4, 4))
    found = dynamics.transform(W @ T, U @ np.linalg.inv(T).T, W, U)
    np.testing.assert_allclose(found.matrix, T, atol=1e-10)
    assert found.error < 1e-9 and found.general.dictionary < 1e-9
    assert found.log_det == pytest.approx(np.linalg.slogdet(T)[1])
    assert found.condition == pytest.approx(np.linalg.cond(T))
    assert found.rank == 4 and not found.pseudo_inverse


def test_codes_go_by_the_inverse_transpose_and_not_by_the_inverse():
    W, U, rng = _reference()
    T = np.eye(4) + np.triu(rng.normal(size=(4, 4)), 1)
    inverse = np.linalg.inv(T)
    A = U @ W.T
    np.testing.assert_allclose((U @ inverse.T) @ (W @ T).T, A, atol=1e-10)
    assert dynamics.transform(W @ T, U @ inverse.T, W, U).error < 1e-9
    assert dynamics.transform(W @ T, U @ inverse, W, U).error > 1  # the report's T^-1


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_a_rotation_is_told_from_a_deformation_and_from_leaving_the_span(seed):
    W, U, rng = _reference(seed=seed)
    Q = _rotation(rng, 4)
    turned = dynamics.transform(W @ Q, U @ Q, W, U)
    assert turned.shares["rotation"] == pytest.approx(1)
    assert turned.orthogonal.codes < 1e-9 and abs(turned.log_det) < 1e-9
    np.testing.assert_allclose(turned.rotation, Q, atol=1e-9)
    apart = np.linalg.qr(W)[0].T
    outside = rng.normal(size=W.shape)
    outside -= apart.T @ (apart @ outside)
    left = dynamics.transform(W + outside, U, W, U)
    np.testing.assert_allclose(left.matrix, np.eye(4), atol=1e-9)
    assert left.shares["outside"] > 0.4
    stretched = dynamics.transform(2 * W, U / 2, W, U)
    assert stretched.shares["deformation"] == pytest.approx(1)
    assert stretched.log_det == pytest.approx(4 * np.log(2))
    for found in (turned, left, stretched):
        assert sum(found.shares.values()) == pytest.approx(1)
        assert found.general.dictionary <= found.orthogonal.dictionary + 1e-9
        assert found.orthogonal.dictionary <= found.identity.dictionary + 1e-9


def test_nothing_changed():
    W, U, _ = _reference()
    found = dynamics.transform(W, U, W, U)
    np.testing.assert_allclose(found.matrix, np.eye(4), atol=1e-12)
    assert found.identity.codes == 0 and found.error < 1e-10
    assert set(found.shares.values()) == {0.0}


def test_coordinates_of_the_codes_serve_as_well_as_the_codes():
    W, U, rng = _reference()
    W_t, U_t = rng.normal(size=W.shape), rng.normal(size=U.shape)
    triangle = np.linalg.qr(np.concatenate([U, U_t], axis=1))[1]
    whole = dynamics.transform(W_t, U_t, W, U)
    short = dynamics.transform(W_t, triangle[:, 4:], W, triangle[:, :4])
    for name in ("general", "orthogonal", "identity"):
        assert getattr(short, name).codes == pytest.approx(getattr(whole, name).codes)
    assert short.codes_norm == pytest.approx(whole.codes_norm)


def test_a_singular_map_gets_a_pseudo_inverse_and_finite_numbers():
    W, U, rng = _reference()
    T = rng.normal(size=(4, 4))
    T[:, 3] = T[:, 0] + 1e-12 * rng.normal(size=4)
    found = dynamics.transform(W @ T, U, W, U)
    assert found.pseudo_inverse and found.rank == 3 and found.condition > 1e10
    assert np.isfinite([found.log_det, found.error, found.condition]).all()
    assert found.error < 1e3 * np.linalg.norm(U)
    trusted = dynamics.transform(W @ T, U, W, U, max_condition=1e15)
    assert trusted.error > 1e6 * found.error  # the report's spike
    zero = dynamics.transform(0 * W, U, W, U)
    assert (
        zero.rank == 0
        and zero.log_det == 0
        and zero.error == pytest.approx(np.linalg.norm(U))
    )
    from_zero = dynamics.transform(W, U, 0 * W, U)
    assert not from_zero.matrix.any()


def test_dependent_reference_concepts_do_not_blow_up():
    W, U, _ = _reference()
    W[:, 3] = W[:, 2]
    found = dynamics.transform(W.copy(), U, W, U)
    assert np.abs(found.matrix).max() <= 1 + 1e-9
    assert found.general.dictionary < 1e-10 and found.rank == 3


def test_torch_float32_agrees_with_numpy():
    W, U, rng = _reference()
    T = rng.normal(size=(4, 4))
    arrays = [W @ T, U @ np.linalg.inv(T).T, W, U]
    expected = dynamics.transform(*arrays)
    found = dynamics.transform(*(torch.tensor(a).float() for a in arrays))
    assert found.matrix.dtype == torch.float32
    np.testing.assert_allclose(found.matrix.numpy(), expected.matrix, atol=1e-5)
    assert found.error < 1e-4


def test_the_path_is_the_sum_of_its_moves():
    rng = np.random.default_rng(0)
    steps = np.array([0, 1, 10, 100])
    matrices = rng.normal(size=(4, 3, 3))
    path = dynamics.transform_path(steps, matrices)
    moves = [np.linalg.norm(b - a) for a, b in itertools.pairwise(matrices)]
    np.testing.assert_allclose(path.velocity[1:], moves)
    np.testing.assert_allclose(path.rate[1:], np.array(moves) / [1, 9, 90])
    assert np.isnan(path.velocity[0]) and path.cumulative[0] == 0
    assert path.cumulative[-1] == pytest.approx(sum(moves)) and path.normalised[-1] == 1
    still = dynamics.transform_path(steps, np.ones((4, 2, 2)))
    assert not still.normalised.any()
    alone = dynamics.transform_path([5], np.ones((1, 2, 2)))
    assert alone.cumulative.tolist() == [0.0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"W_t": np.ones((20, 3))},
            ArgumentError,
            "W_t and W_ref must have the same shape",
        ),
        (
            {"U_t": np.ones((60, 3))},
            ArgumentError,
            "U_t and U_ref must have the same shape",
        ),
        ({"max_condition": 0.5}, ArgumentError, "max_condition"),
        ({"W_t": np.full((20, 4), np.nan)}, NonFiniteError, "W_t holds"),
        ({"W_t": np.ones((2, 20, 4))}, ArgumentError, "2 dimensions"),
    ],
)
def test_bad_arguments_are_refused(change, error, message):
    W, U, _ = _reference()
    with pytest.raises(error, match=message):
        dynamics.transform(**{"W_t": W, "U_t": U, "W_ref": W, "U_ref": U, **change})
    with pytest.raises(ArgumentError, match="matrices must have shape"):
        dynamics.transform_path([0, 1], np.ones((3, 2, 2)))
