"""Second moments and their leading eigenvectors: the fast and still accurate way to a thin SVD."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from .tensors import WITHOUT_DOUBLE, on_cpu, precise

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
    if not on_cpu(A):
        return precise(A).mT @ precise(A) if double else A.mT @ A
    total = None
    for rows in A.split(CHUNK_ROWS) if double else (A,):
        part = rows.double().numpy() if double else rows.numpy()
        total = part.T @ part if total is None else total + part.T @ part
    return torch.from_numpy(total)


def moments(n: int, m: int) -> int:
    """Return how many numbers `thin_svd` of (n, m) holds: the second moments, and a copy to solve.

    Examples
    --------
    >>> moments(5000, 100)
    20000
    """
    return 2 * min(n, m) ** 2


def leading(C: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Return the `r` largest eigenvalues, descending, and their eigenvectors (m, r) of `C`."""
    m = C.shape[0]
    if not on_cpu(C) or r > m // 2:
        values, vectors = eigen(C)
        values = values[-r:]
        vectors = vectors[:, -r:]
    else:
        low, high = scipy.linalg.eigh(C.numpy(), subset_by_index=[m - r, m - 1])
        values = torch.from_numpy(low)
        vectors = torch.from_numpy(np.ascontiguousarray(high))
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
        basis, exact = _leading_rows(A.mT, k)
        V = torch.linalg.qr(A.mT @ basis).Q
        exact = False
    Y = A @ V
    if exact:
        sigma = torch.linalg.vector_norm(Y, dim=0)
    else:
        rotation = eigen(precise(Y).mT @ precise(Y))[1].flip(1).to(A.dtype)
        Y = Y @ rotation
        V = V @ rotation
        # Not the roots of the eigenvalues: where A has no rank left these are 1e-8, not 1e-16.
        sigma = torch.linalg.vector_norm(Y, dim=0)
    alive = (sigma > max(n, m) * torch.finfo(A.dtype).eps * sigma[0]).to(A.dtype)
    Y = Y * alive
    V = V * alive
    sigma = sigma.to(A.dtype) * alive
    if k == r:
        return Y, sigma, V
    pad = (0, r - k)
    return tuple(torch.nn.functional.pad(x, pad) for x in (Y, sigma, V))  # type: ignore[return-value]


def eigen(C: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues, ascending, and eigenvectors of a small symmetric matrix (..., r, r).

    A device is waited for. One without float64 has no such routine either: there it is the CPU's.
    """
    if C.device.type in WITHOUT_DOUBLE:
        values, vectors = torch.linalg.eigh(C.cpu().double())
        return values.to(C), vectors.to(C)
    return torch.linalg.eigh(C)


def polar(X: Tensor) -> Tensor:
    """Return the orthogonal factor ``X (X^T X)^-1/2`` of a matrix (m, r), m >= r, by products.

    No number of it is read on the host. Directions shorter than ``FLAT`` of the longest come out
    short, and vanishing ones vanish. The scaled Newton-Schulz iteration of Chen and Chow (2014).
    """
    wide = precise(X)
    wide = wide / torch.linalg.vector_norm(wide).clamp(min=torch.finfo(wide.dtype).tiny)
    for scale in _SCALES:
        wide = wide @ (
            1.5 * scale * identity(wide) - (0.5 * scale**3) * (wide.mT @ wide)
        )
    return wide.to(X.dtype)


def _scales(low: float) -> list[float]:
    """Return the factors that bring singular values from `low` to 1 nearest to 1 in each step."""
    scales = []
    while low < 1 - 1e-14:
        scales.append((3 / (1 + low + low**2)) ** 0.5)
        low = 0.5 * scales[-1] * low * (3 - (scales[-1] * low) ** 2)
    return scales


FLAT = 1e-7
_SCALES = _scales(FLAT)


def identity(X: Tensor) -> Tensor:
    """Return the identity (r, r) for a matrix (m, r), of its kind."""
    return torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)


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
    single = B.dtype == torch.float32
    # No device is asked what rounding hides.
    if G is not None and not (single and not on_cpu(B)):
        values, vectors = eigen(precise(G))
        hidden = single and bool((values[..., 0] < ROUNDED * values[..., -1]).any())
    else:
        hidden = True
    if hidden:
        values, vectors = eigen(precise(F) @ precise(F).mT)
    mask = values > VANISHED[B.dtype] * values[..., -1:]
    inverse = torch.where(mask, 1 / torch.where(mask, values, 1.0), 0.0)[..., None, :]
    return ((vectors * inverse) @ (vectors.mT @ B.to(vectors.dtype))).to(B.dtype)


def pseudo_inverse(G: Tensor, tolerance: float) -> Tensor:
    """Return the inverse of a symmetric ``G >= 0`` (r, r), without eigenvalues below `tolerance`.

    The tolerance is a part of the largest one.
    """
    values, vectors = eigen(G)
    mask = values > tolerance * values[-1]
    return (
        vectors * torch.where(mask, 1 / torch.where(mask, values, 1.0), 0.0)
    ) @ vectors.mT


def unit_rows(W: Tensor) -> Tensor:
    """Return the rows scaled to unit norm; zero rows stay zero."""
    norm = torch.linalg.vector_norm(W, dim=-1, keepdim=True)
    return W / torch.where(norm > 0, norm, 1.0)


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
