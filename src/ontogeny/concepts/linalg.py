"""Second moments and their leading eigenvectors: the fast and still accurate way to a thin SVD."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

# In float32 the second moment loses directions whose variance is below this part of the largest.
SINGLE_SPAN = 1e-3
# In float64 the same happens here; beyond it a thin SVD of the matrix itself is taken.
DOUBLE_SPAN = 1e-10
CHUNK_ROWS = 4096
# Squared length of a direction, against the longest, that counts as vanishing in least squares.
VANISHED = {torch.float32: 1e-9, torch.float64: 1e-10}
# Below this part of the largest, rounding has a part in the eigenvalues of those of float32.
ROUNDED = 3e-7


def column_gram(A: Tensor, *, double: bool = False) -> Tensor:
    """Return ``A^T A`` (m, m), in float64 if `double`.

    On the CPU NumPy's product is used, which knows that the result is symmetric.
    """
    if A.is_cuda:
        return A.double().mT @ A.double() if double else A.mT @ A
    total = None
    for rows in A.split(CHUNK_ROWS) if double else (A,):
        part = rows.double().numpy() if double else rows.numpy()
        total = part.T @ part if total is None else total + part.T @ part
    return torch.from_numpy(total)


def leading(C: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Return the `r` largest eigenvalues, descending, and their eigenvectors (m, r) of `C`."""
    m = C.shape[0]
    if C.is_cuda or r > m // 2:
        values, vectors = torch.linalg.eigh(C)
        values, vectors = values[-r:], vectors[:, -r:]
    else:
        low, high = scipy.linalg.eigh(C.numpy(), subset_by_index=[m - r, m - 1])
        values, vectors = torch.from_numpy(low), torch.from_numpy(np.ascontiguousarray(high))
    return values.flip(0), vectors.flip(1)


def thin_svd(A: Tensor, r: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``U Sigma`` (n, r), ``sigma`` (r,) and V (m, r) of the best rank-`r` approximation.

    Directions beyond the numerical rank are zero columns. The eigenvectors of the second moment
    span the space. Where the spectrum is wide, the moment is taken in float64, or a thin SVD of A,
    and a Rayleigh-Ritz step on ``A V`` gives the singular values to full relative accuracy.
    """
    n, m = A.shape
    k = min(r, n, m)
    if m <= n:
        V, exact = _leading_rows(A, k)
    else:
        left, exact = _leading_rows(A.mT, k)
        V, exact = range_basis(A.mT @ left), False
    Y = A @ V
    if exact:
        sigma = torch.linalg.vector_norm(Y, dim=0)
    else:
        rotation = torch.linalg.eigh(Y.double().mT @ Y.double())[1].flip(1).to(A.dtype)
        Y, V = Y @ rotation, V @ rotation
        # Not the roots of the eigenvalues: where A has no rank left these are 1e-8, not 1e-16.
        sigma = torch.linalg.vector_norm(Y, dim=0)
    alive = (sigma > max(n, m) * torch.finfo(A.dtype).eps * sigma[0]).to(A.dtype)
    Y, V, sigma = Y * alive, V * alive, sigma.to(A.dtype) * alive
    if k == r:
        return Y, sigma, V
    pad = (0, r - k)
    return tuple(torch.nn.functional.pad(x, pad) for x in (Y, sigma, V))  # type: ignore[return-value]


def product(X: Tensor, Y: Tensor) -> Tensor:
    """Return ``X @ Y``, computed as a batch of one.

    Rounding differs from that of ``@``: descent that starts from the same numbers goes on to the
    same numbers only if all of its products are of one kind, and `sweep` needs batched ones.
    """
    return torch.bmm(X[None], Y[None])[0]


def least_squares(F: Tensor, B: Tensor, G: Tensor | None = None) -> Tensor:
    """Return the shortest ``argmin |A - X^T F|`` (..., r, q) from F (..., r, p), ``B = F A^T``.

    Directions in which F vanishes have no part in it. ``G = F F^T``, if it is at hand, is used
    unless it is in float32 and F has directions that its rounding hides.
    """
    if G is not None:
        values, vectors = torch.linalg.eigh(G.double())
        hidden = (values[..., 0] < ROUNDED * values[..., -1]).any()
    if G is None or (G.dtype == torch.float32 and bool(hidden)):
        values, vectors = torch.linalg.eigh(F.double() @ F.double().mT)
    known = values > VANISHED[B.dtype] * values[..., -1:]
    inverse = torch.where(known, 1 / torch.where(known, values, 1.0), 0.0)[..., None, :]
    return ((vectors * inverse) @ (vectors.mT @ B.double())).to(B.dtype)


def unit_rows(W: Tensor) -> Tensor:
    """Return the rows scaled to unit norm; zero rows stay zero."""
    norm = torch.linalg.vector_norm(W, dim=-1, keepdim=True)
    return W / torch.where(norm > 0, norm, 1.0)


def range_basis(Y: Tensor) -> Tensor:
    """Return an orthonormal basis of the columns of `Y`."""
    return torch.linalg.qr(Y).Q


def _leading_rows(A: Tensor, k: int) -> tuple[Tensor, bool]:
    """Return orthonormal columns that span the `k` leading right singular vectors of tall `A`.

    Also whether they are the singular vectors themselves to working precision.
    """
    if A.dtype == torch.float32:
        values, vectors = leading(column_gram(A), k)
        if values[-1] > SINGLE_SPAN * values[0]:
            return vectors, True
    values, vectors = leading(column_gram(A, double=True), k)
    if A.dtype == torch.float64 and values[-1] <= DOUBLE_SPAN * values[0]:
        return torch.linalg.svd(A, full_matrices=False).Vh[:k].mT, False
    return vectors.to(A.dtype), False
