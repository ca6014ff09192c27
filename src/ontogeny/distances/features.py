"""The rotation of the features that brings one set of activations nearest to another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from ..arrays import matrix
from ..errors import ArgumentError
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
    rotation = by_inverses(M) if len(M) >= WIDE else None
    return best_rotation(M[None])[0] if rotation is None else rotation


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
    # Its singular values lie from 1 to `spread`.
    X = M / smallest
    inverse = inverse * smallest
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
        deviation = float(gram.abs().max())
        X = X - X @ gram.mul_(0.5)
        if deviation < _SETTLED:
            return X if _asymmetry(X, M) < _EXACT else None
    return None


def _asymmetry(Q: Tensor, M: Tensor) -> float:
    """Return how far ``Q^T M`` is from symmetric, relative to M, seen along a few directions."""
    probes = _directions(M, 8)
    apart = Q.mT @ (M @ probes) - M.mT @ (Q @ probes)
    return float(torch.linalg.vector_norm(apart) / torch.linalg.vector_norm(M))


def _largest(M: Tensor) -> float:
    """Return about the largest singular value, by power iteration."""
    direction = _directions(M, 1)
    size = 0.0
    for _ in range(12):
        direction = M.mT @ (M @ direction)
        size = float(torch.linalg.vector_norm(direction))
        direction = direction / size
    return size**0.5


def _directions(M: Tensor, count: int) -> Tensor:
    """Return the same random unit columns (m, count) at every call."""
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(M.shape[1], count, generator=generator, dtype=M.dtype).to(
        M.device
    )
    return directions / torch.linalg.vector_norm(directions, dim=0)


_CHUNK_ROWS = 4096  # rows that are held in float64 at once


class FeatureRotation(NamedTuple):
    """Orthogonal Q (m, m), whole or as ``Q^T = I + left right^T`` where that is smaller.

    Attributes
    ----------
    whole
        Q, or None.
    left, right
        Factors (m, 2n) where Q is not held whole, else None.
    """

    whole: Tensor | None
    left: Tensor | None = None
    right: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return sum(part.nbytes for part in self if part is not None)

    def of_rows(self, A: Tensor) -> Tensor:
        """Return ``A Q`` (n, m): activations seen in the features of the others."""
        if self.whole is not None:
            return A @ self.whole.to(A)
        assert self.left is not None and self.right is not None
        return A + (A @ self.right.to(A)) @ self.left.to(A).mT

    def of_columns(self, W: Tensor) -> Tensor:
        """Return ``Q^T W`` (m, r): the dictionary of activations ``U W^T`` after ``of_rows``.

        It is computed where Q is, which is the larger, and given back where W is.
        """
        if self.whole is not None:
            return (self.whole.to(W.dtype).mT @ W.to(self.whole.device)).to(W.device)
        assert self.left is not None and self.right is not None
        there = W.to(self.left.device)
        turned = self.left.to(W.dtype) @ (self.right.to(W.dtype).mT @ there)
        return (there + turned).to(W.device)


def feature_rotation(A: Tensor, B: Tensor) -> FeatureRotation:
    """Return the orthogonal Q that minimises ``||A Q - B||_F``.

    With fewer samples than features Q is not unique: `A` says nothing of the directions that none
    of its samples has. They are turned as little as is possible (the direct rotation between the
    complements of the two row spaces), and everything is computed from factors of n columns.

    Parameters
    ----------
    A, B
        Activations (n, m) of the same samples; the dtype of B is that of the result. Products and
        decompositions are in float64, and no float64 copy of all samples is made where n >= m.

    Raises
    ------
    ArgumentError
        If the shapes differ.
    NonFiniteError
        If either holds NaN or infinity.

    Notes
    -----
    Schönemann (1966); the direct rotation is that of C. Davis and W. Kahan, SIAM J. Numer. Anal. 7
    (1970).

    Examples
    --------
    >>> A = torch.eye(3)[:, [1, 2, 0]]
    >>> torch.round(feature_rotation(A, torch.eye(3)).of_rows(A)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    A = matrix("A", A)
    B = matrix("B", B)
    if A.shape != B.shape:
        raise ArgumentError(
            f"A and B must have the same shape (n, m); got {tuple(A.shape)} and {tuple(B.shape)}."
        )
    n, m = A.shape
    if n >= m:
        return FeatureRotation(polar_factor(_product(A, B)).to(B))
    left, right = _thin(_double(A), _double(B))
    if 2 * left.numel() <= m * m:
        return FeatureRotation(None, left.to(B), right.to(B))
    whole = right @ left.mT
    whole.diagonal().add_(1)
    return FeatureRotation(whole.to(B))


def squared_distances(
    A: Tensor, B: Tensor, rotation: FeatureRotation | None = None
) -> Tensor:
    """Return the squared distances (n,) of the rows of ``A Q`` from those of B, in float64.

    Without a rotation Q is the identity.

    Examples
    --------
    >>> squared_distances(
    ...     torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]])
    ... ).tolist()
    [25.0]
    """
    parts = []
    for rows, others in _chunks(A, B):
        turned = rows if rotation is None else rotation.of_rows(rows)
        parts.append((turned - others).square().sum(1))
    return torch.cat(parts)


def _product(A: Tensor, B: Tensor) -> Tensor:
    """Return ``A^T B`` in float64."""
    return reduce(Tensor.add_, (rows.mT @ others for rows, others in _chunks(A, B)))


def _chunks(A: Tensor, B: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the rows of both in float64, a part at a time."""
    for rows, others in zip(A.split(_CHUNK_ROWS), B.split(_CHUNK_ROWS), strict=True):
        yield _double(rows), _double(others)


def _double(X: Tensor) -> Tensor:
    """Return X in float64, on the CPU where its device has no such numbers (Apple's GPUs)."""
    return (X.cpu() if X.device.type == "mps" else X).double()


def _thin(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Return factors (m, 2n) of ``Q^T - I`` for fewer samples than features.

    With orthonormal bases F and G of the two row spaces, Q^T is ``G P F^T`` in the first of them,
    where P is orthogonal. In its complement it is ``I - S G^T``, which moves each principal vector
    of the one complement to its partner in the other.
    """
    F, triangle_A = torch.linalg.qr(A.mT)
    G, triangle_B = torch.linalg.qr(B.mT)
    P = polar_factor(triangle_A @ triangle_B.mT).mT
    overlap = F.mT @ G
    turn = polar_factor(overlap)
    # Symmetric; its eigenvalues are the cosines of the angles.
    along = turn.mT @ overlap
    along = (along + along.mT) / 2
    along.diagonal().add_(1)
    S = torch.linalg.solve(along, (F @ turn + G).mT).mT
    return torch.cat([G @ P + S @ overlap.mT - F, -S], 1), torch.cat([F, G], 1)
