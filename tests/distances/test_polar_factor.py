"""The orthogonal factor of wide matrices: Newton's iteration against the SVD."""

import pytest
import torch

from ontogeny.distances import features
from ontogeny.distances.features import by_inverses, polar_factor
from ontogeny.distances.rotations import best_rotation


def _matrix(size, condition, seed=0):
    """A matrix M = Q H of known factors, with log-spaced singular values."""
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randn(2, size, size, generator=generator, dtype=torch.float64)
    left, right = torch.linalg.qr(draws).Q
    values = torch.logspace(
        0, -torch.tensor(condition).log10().item(), size, dtype=torch.float64
    )
    return left, values, right


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e3, 1e6, 1e9])
def test_newton_gives_the_planted_factor(condition):
    left, values, right = _matrix(80, condition)
    found = by_inverses(left * values @ right.mT)
    assert float((found.mT @ found - torch.eye(80)).norm()) < 1e-12
    # Directions count by their singular values, as activations do.
    weighed = (found - left @ right.mT) @ (right * values)
    assert float(weighed.norm() / values.norm()) < 1e-12
    tolerance = 1e-10 if condition <= 1e6 else 1e-7
    assert float((found @ right - left).norm(dim=0).max()) < tolerance


def test_where_it_is_not_unique_or_not_exact_the_svd_is_taken(monkeypatch):
    left, values, right = _matrix(20, 10.0)
    values[-1] = 0
    broken = [left * values @ right.mT, torch.zeros(20, 20, dtype=torch.float64)]
    values[-1] = 1e-14
    broken.append(left * values @ right.mT)
    monkeypatch.setattr(features, "WIDE", 2)
    for M in broken:
        assert by_inverses(M) is None
        assert torch.equal(polar_factor(M), best_rotation(M[None])[0])
    monkeypatch.setattr(features, "_EXACT", 0.0)
    assert by_inverses(torch.eye(4, dtype=torch.float64) + broken[0][:4, :4]) is None


def test_narrow_matrices_take_the_svd(monkeypatch):
    monkeypatch.setattr(features, "by_inverses", lambda M: pytest.fail("too narrow"))
    left, values, right = _matrix(30, 10.0)
    expected = left @ right.mT
    torch.testing.assert_close(
        polar_factor(left * values @ right.mT), expected, rtol=0, atol=1e-12
    )
