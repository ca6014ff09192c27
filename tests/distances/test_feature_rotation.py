"""The rotation between two sets of activations: exact, thin where samples are few."""

import pytest
import torch

from ontogeny.distances.features import feature_rotation, squared_distances
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.distances.alignment import align


def _pair(n, m, dtype=torch.float64, condition=1.0):
    generator = torch.Generator().manual_seed(n * 100 + m)
    A, B = (
        torch.randn(n, m, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    falling = torch.logspace(0, -float(torch.tensor(condition).log10()) / 2, m)
    return (A * falling).to(dtype), ((A + 0.3 * B) * falling).flip(1).to(dtype)


def _whole(rotation, m):
    return rotation.of_columns(torch.eye(m, dtype=torch.float64)).mT


@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_with_many_samples_it_is_what_align_finds(dtype, condition):
    A, B = _pair(5000, 30, dtype, condition)  # more than one chunk of rows
    found, known = feature_rotation(A, B), align(B, A, under="rotation").transform
    tolerance = 1e-10 if dtype == torch.float64 else 1e-6
    torch.testing.assert_close(
        found.whole, known, rtol=0, atol=tolerance * condition**0.5
    )
    W = A[:7].mT
    limit = (1e-10 if dtype == torch.float64 else 1e-6) * float(W.norm())
    assert float((found.of_columns(W) - known.mT @ W).norm()) < limit


@pytest.mark.parametrize(("n", "m"), [(19, 20), (12, 20), (5, 20), (3, 40), (1, 7)])
def test_with_few_samples_it_equals_align_where_that_is_unique(n, m):
    A, B = _pair(n, m)
    found, Q = feature_rotation(A, B), align(B, A, under="rotation").transform
    assert (found.whole is None) == (4 * n <= m)
    torch.testing.assert_close(found.of_columns(A.mT), Q.mT @ A.mT, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.of_rows(A), A @ Q, rtol=0, atol=1e-10)
    own = _whole(found, m)
    torch.testing.assert_close(
        own.mT @ own, torch.eye(m, dtype=own.dtype), rtol=0, atol=1e-10
    )
    torch.testing.assert_close(found.of_rows(B), B @ own, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("n", "m"), [(12, 20), (5, 20)])
def test_what_no_sample_has_is_turned_as_little_as_possible(n, m):
    """The nearest orthogonal map between the complements, from their own bases."""
    A, B = _pair(n, m)
    F, G = (torch.linalg.svd(X).Vh[n:].mT for X in (A, B))
    left, _, right = torch.linalg.svd(F.mT @ G)
    expected = G @ (left @ right).mT  # where the columns of F go
    torch.testing.assert_close(
        feature_rotation(A, B).of_columns(F), expected, rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("n", [3, 30])
def test_activations_that_did_not_move_are_not_turned(n):
    A = _pair(n, 20)[0]
    own = _whole(feature_rotation(A, A), 20)
    torch.testing.assert_close(
        own, torch.eye(20, dtype=torch.float64), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("n", [3, 30])
def test_a_rotation_that_was_made_is_found_and_leaves_nothing(n):
    A = _pair(n, 20)[0]
    Q = torch.linalg.qr(_pair(20, 20)[1]).Q
    found = feature_rotation(A, A @ Q)
    assert float(squared_distances(A, A @ Q, found).max()) < 1e-24
    torch.testing.assert_close(found.of_columns(A.mT), Q.mT @ A.mT, rtol=0, atol=1e-10)


def test_the_thin_form_holds_fewer_numbers():
    found = feature_rotation(*_pair(4, 400))
    # Two factors of 2 n columns, not 400 x 400 numbers.
    assert found.nbytes == 2 * 8 * 400 * 8


def test_what_is_no_pair_of_activations_is_refused():
    A = torch.ones(4, 3)
    with pytest.raises(ArgumentError, match=r"got \(4, 3\) and \(4, 2\)"):
        feature_rotation(A, A[:, :2])
    with pytest.raises(NonFiniteError, match="B"):
        feature_rotation(A, A * float("nan"))
