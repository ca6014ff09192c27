"""Dimensions of features: closed forms, invariances, and what is refused."""

import numpy as np
import pytest

from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.geometry import feature_dimensionality


def polygon(n):
    angle = 2 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize(
    ("W", "expected"),
    [
        (np.eye(3), 1.0),
        (np.hstack([np.eye(3), -np.eye(3)]), 1 / 2),
        (polygon(3), 2 / 3),
        (polygon(5), 2 / 5),
        (
            np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]),
            3 / 4,
        ),  # tetrahedron
    ],
)
def test_uniform_arrangements_have_their_published_dimensions(W, expected):
    np.testing.assert_allclose(feature_dimensionality(W), expected, atol=1e-12)


def test_rotations_and_scale_change_nothing_and_a_zero_column_has_none():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(4, 7))
    turned = np.linalg.qr(rng.normal(size=(4, 4)))[0] @ W
    found = feature_dimensionality(np.hstack([1e-180 * turned, np.zeros((4, 1))]))
    np.testing.assert_allclose(found[:-1], feature_dimensionality(W), atol=1e-12)
    assert found[-1] == 0 and (found[:-1] > 0).all() and (found <= 1).all()
    assert feature_dimensionality(np.zeros((2, 3))).tolist() == [0, 0, 0]


def test_the_dimensions_of_a_tight_frame_add_up_to_its_space():
    frame = np.linalg.qr(np.random.default_rng(1).normal(size=(9, 4)))[0].T  # W Wᵀ = 1
    assert feature_dimensionality(frame).sum() == pytest.approx(4)


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ArgumentError, match="W must have 2 dimensions"):
        feature_dimensionality([1.0, 2.0, 3.0])
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        feature_dimensionality([[np.inf, 1.0]])
