"""Distances between the Gram matrices W W^T + eps I, and between column spaces (Grassmann).

The m x m matrices are never formed. With the thin SVDs ``W = U_W S_W ..`` and ``V = U_V S_V ..``
both distances are functions of the singular values, of the overlap ``C = U_W^T U_V`` and of what
each column space leaves of the other; outside of the two column spaces they have no part.
"""

from __future__ import annotations

import math
from typing import Any

from ..arrays import Array
from ..errors import ArgumentError
from .pair import Pair, measured, squares
from .rotations import nearest_to_diagonal


def matrix_log(W: Array, V: Array, eps: float = 1e-6) -> Any:
    """Matrix-logarithm distance: ||log(W W^T + eps I) - log(V V^T + eps I)||_F.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch; their r may differ.
    eps
        Regularisation, in squared units of W; positive. It sets how small a direction still
        counts: one that only W has contributes log(1 + s^2 / eps).

    Returns
    -------
    float, or an array of shape (...)
        In nats.

    Raises
    ------
    ArgumentError
        If m or the leading dimensions differ or `eps` is not positive.

    Notes
    -----
    Bernas (2025), Definition 46. The log-Euclidean metric of Arsigny et al. (2007) on the Gram
    matrices. With a_i = log1p(s_i^2 / eps) of W and b_j of V, the square is the sum of
    (a_i - b_j)^2 C_ij^2, a_i^2 sin_i^2 and b_j^2 sin_j^2: positive terms only, nothing cancels.

    Examples
    --------
    >>> round(matrix_log([[2.0], [0.0]], [[1.0], [0.0]], eps=1e-12), 6)  # log 4
    1.386294
    """
    return measured(matrix_log_of, W, V, any_r=True, eps=eps)


def bures(W: Array, V: Array, eps: float = 1e-6) -> Any:
    """Bures distance between W W^T + eps I and V V^T + eps I.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch; their r may differ.
    eps
        Regularisation, in squared units of W; positive. As it goes to 0 this becomes the
        Procrustes distance.

    Returns
    -------
    float, or an array of shape (...)
        In the units of W.

    Raises
    ------
    ArgumentError
        If m or the leading dimensions differ or `eps` is not positive.

    Notes
    -----
    Bernas (2025), Definition 48; the 2-Wasserstein distance between centred Gaussians with these
    covariances (Bhatia, Jain and Lim 2019). Computed as the Procrustes distance between square
    roots of both matrices, which lives in the joint column space of dimension 2 r at most.

    Examples
    --------
    >>> round(bures([[2.0], [0.0]], [[1.0], [0.0]], eps=1e-12), 6)
    1.0
    """
    return measured(bures_of, W, V, any_r=True, eps=eps)


def matrix_log_of(pair: Pair, eps: float = 1e-6) -> Array:
    """Matrix-logarithm distance of every member of a pair of stacks."""
    xp = pair.xp
    _check_eps(eps)
    root = math.sqrt(eps)
    first, second = (
        xp.log1p((f.svd[1] / root) ** 2) for f in (pair.first, pair.second)
    )
    shared = (first[..., :, None] - second[..., None, :]) * pair.overlap
    parts = [
        shared,
        first[..., None, :] * pair.residual_first,
        second[..., None, :] * pair.triangle,
    ]
    return xp.sqrt(sum(xp.sum(part * part, axis=(-2, -1)) for part in parts))


def bures_of(pair: Pair, eps: float = 1e-6) -> Array:
    """Bures distance of every member of a pair of stacks."""
    _check_eps(eps)
    f, G = _square_roots(pair, math.sqrt(eps))
    return nearest_to_diagonal(pair, pair.xp.sum(f * f, axis=-1) + squares(G), f, G)


def _square_roots(pair: Pair, root: float) -> tuple[Array, Array]:
    """Square roots of the two Gram matrices in the joint column space.

    In the basis of `Pair.coordinates` W's is diagonal, (k, 2q); V's is (k, 2q, 2q).
    """
    xp = pair.xp
    small = xp.full_like(pair.first.svd[1], root)
    first = xp.concat([xp.hypot(pair.first.svd[1], small), small], axis=-1)
    values = pair.second.svd[1]
    # Sqrt(s^2 + eps) - sqrt(eps).
    gained = values**2 / (xp.hypot(values, small) + small)
    eye = xp.eye(first.shape[-1], dtype=first.dtype, device=first.device)
    vectors = pair.coordinates
    return first, root * eye + (vectors * gained[..., None, :]) @ vectors.mT


def _check_eps(eps: float) -> None:
    if not 1e-100 <= eps <= 1e100:  # beyond, s^2 / eps would overflow
        raise ArgumentError(f"eps must be positive, from 1e-100 to 1e100; got {eps}.")


def grassmann(W: Array, V: Array, rank_tolerance: float | None = None) -> Any:
    """Grassmann distance: the norm of the sines of the principal angles between column spaces.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch; their r may differ.
    rank_tolerance
        Singular values below this share of the largest one span nothing. By default
        ``max(m, r)`` times the precision of the argument's dtype (float32 for half precision).

    Returns
    -------
    float, or an array of shape (...)
        Without unit; between 0 and sqrt(r), for different r the root of their mean.

    Raises
    ------
    ArgumentError
        If m or the leading dimensions differ or the tolerance is not between 0 and 1.

    Notes
    -----
    Bernas (2025), Definition 47. Computed as ||P_W - P_V||_F / sqrt(2) with P the orthogonal
    projections, which is the same where the ranks agree and stays defined where they do not (a
    column space of rank a inside one of rank b is sqrt((b - a) / 2) away). The sines come from
    what one space leaves of the other: the arc cosine of a cosine near 1 has eight digits only.
    Invariant when either dictionary is multiplied by any invertible matrix from the right.

    Examples
    --------
    >>> grassmann([[1.0], [0.0]], [[1.0], [1.0]])
    0.7071067811865475
    """
    return measured(grassmann_of, W, V, any_r=True, rank_tolerance=rank_tolerance)


def grassmann_of(pair: Pair, rank_tolerance: float | None = None) -> Array:
    """Grassmann distance of every member of a pair of stacks."""
    if rank_tolerance is not None and not 0 <= rank_tolerance < 1:
        raise ArgumentError(f"rank_tolerance must be in [0, 1); got {rank_tolerance}.")
    xp = pair.xp
    kept_first = pair.first.ranked(rank_tolerance)
    kept_second = pair.second.ranked(rank_tolerance)
    if bool(xp.all(kept_first)) and bool(xp.all(kept_second)):
        return xp.sqrt(squares(pair.triangle))
    first = xp.where(kept_first[..., None, :], pair.first.svd[0], 0.0)
    second = xp.where(kept_second[..., None, :], pair.second.svd[0], 0.0)
    outside = squares(second - first @ (first.mT @ second))
    ranks = [
        xp.sum(xp.astype(k, outside.dtype), axis=-1) for k in (kept_first, kept_second)
    ]
    # outside + (rank W - rank V) is what V's space leaves of W's: the two halves of the projection
    # distance. It cannot be negative; rounding of an exact 0 can.
    return xp.sqrt(xp.clip(outside + (ranks[0] - ranks[1]) / 2.0, 0.0, None))
