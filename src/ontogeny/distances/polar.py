"""The orthogonal factor of a large matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from .rotations import best_rotation

WIDE = 2048  # from here on inverses take less time than singular vectors
_CONDITION = 1e12  # beyond it the smallest singular vectors are those of rounding
_EXACT = 1e-12  # asymmetry of Q^T M against the norm of M: an SVD of 4,096 columns leaves 1e-14
_SETTLED = 1e-7  # the last step squares what is left
_LAST_STEPS = 3


def polar_factor(M: Tensor) -> Tensor:
    """Return the orthogonal Q (m, m) nearest to `M` in float64: ``M = Q H`` with H = H^T >= 0.

    Up to 2,047 columns it comes from an SVD. Wider matrices are brought there by Newton's
    iteration, whose steps are inverses. It is checked, and where the check fails (as it does where
    M is singular, so that Q is not unique) the SVD is taken as well.

    Notes
    -----
    N. Higham, SIAM J. Sci. Stat. Comput. 7 (1986), with the scaling of R. Byers and H. Xu, SIAM J.
    Matrix Anal. Appl. 30 (2008).

    Examples
    --------
    >>> polar_factor(torch.tensor([[0.0, -2.0], [3.0, 0.0]])).abs().round().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    found = by_inverses(M) if len(M) >= WIDE else None
    return best_rotation(M[None])[0] if found is None else found


def by_inverses(M: Tensor) -> Tensor | None:
    """Return the orthogonal factor by Newton's iteration, or None where it is not exact."""
    try:
        inverse = torch.linalg.inv(M)
    except torch.linalg.LinAlgError:
        return None
    smallest = 1 / _largest(inverse)
    spread = _largest(M) / smallest
    if not spread < _CONDITION:  # or NaN
        return None
    X, inverse = M / smallest, inverse * smallest  # its singular values lie from 1 to `spread`
    while True:
        X = X.mul_(spread**-0.5 / 2).add_(inverse.mT, alpha=spread**0.5 / 2)
        spread = (spread**0.5 + spread**-0.5) / 2
        if spread - 1 <= _SETTLED:
            return _settled(X, M)
        inverse = torch.linalg.inv(X)


def _settled(X: Tensor, M: Tensor) -> Tensor | None:
    """Return X made orthogonal to working precision, or None where it is not the factor of M."""
    for _ in range(_LAST_STEPS):
        gram = X.mT @ X
        gram.diagonal().sub_(1)
        left = float(gram.abs().max())
        X = X - X @ gram.mul_(0.5)
        if left < _SETTLED:
            return X if _asymmetry(X, M) < _EXACT else None
    return None


def _asymmetry(Q: Tensor, M: Tensor) -> float:
    """Return how far ``Q^T M`` is from symmetric, relative to M, seen along a few directions."""
    probes = _directions(M, 8)
    apart = Q.mT @ (M @ probes) - M.mT @ (Q @ probes)
    return float(torch.linalg.vector_norm(apart) / torch.linalg.vector_norm(M))


def _largest(M: Tensor) -> float:
    """Return about the largest singular value, by power iteration."""
    direction, size = _directions(M, 1), 0.0
    for _ in range(12):
        direction = M.mT @ (M @ direction)
        size = float(torch.linalg.vector_norm(direction))
        direction = direction / size
    return size**0.5


def _directions(M: Tensor, count: int) -> Tensor:
    """Return the same random unit columns (m, count) at every call."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(M.shape[1], count, generator=generator, dtype=M.dtype).to(M.device)
    return drawn / torch.linalg.vector_norm(drawn, dim=0)
