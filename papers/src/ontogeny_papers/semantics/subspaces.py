"""How much of one matrix's leading word directions lies in those of another."""

from __future__ import annotations

from collections.abc import Sequence

from ontogeny.arrays import Array, matrix, namespace
from ontogeny.errors import ArgumentError, check_iterable, check_whole


def leading_directions(M: Array, k: int) -> Array:
    """Return the first `k` left singular vectors of `M` with its column means removed.

    Parameters
    ----------
    M
        Matrix with one row a word (V, n): logits (V, m), or word embeddings (V, d).
    k
        Number of directions, at least 1 and at most min(V, n).

    Returns
    -------
    Array
        (V, k), orthonormal, each orthogonal to the vector of ones where it has a singular value.

    Raises
    ------
    ArgumentError
        If `k` is out of range.
    NonFiniteError
        If `M` holds NaN or infinity.

    Notes
    -----
    Removing the column means is the centring of the paper's S̃ = (I − 11ᵀ/V) S: a constant added
    to all logits of a context changes no prediction.

    Examples
    --------
    >>> import numpy as np
    >>> leading_directions(np.array([[3.0, 3.0], [1.0, 1.0]]), 1).shape
    (2, 1)
    """
    M = matrix("M", M)
    xp = namespace(M)
    if check_whole("k", k) > min(M.shape):
        raise ArgumentError(
            f"k must lie in 1 to {min(M.shape)}, the smaller side of M; got {k}."
        )
    centred = M - xp.mean(M, axis=0, keepdims=True)
    if M.shape[1] <= M.shape[0]:
        return xp.linalg.svd(centred, full_matrices=False)[0][:, :k]
    # A wide matrix: its small Gram matrix gives the leading directions several times faster. What
    # that loses, singular values below the root of the precision, are not leading.
    _, vectors = xp.linalg.eigh(xp.astype(centred @ centred.T, xp.float64))
    return xp.astype(xp.flip(vectors[:, -k:], axis=(1,)), M.dtype)


def subspace_overlap(U: Array, Q: Array, ks: Sequence[int]) -> list[float]:
    """Return ‖U_kᵀ Q_k‖²_F / k for every k: the mean squared cosine between two k-dim. subspaces.

    Parameters
    ----------
    U, Q
        Orthonormal columns (V, at least max(ks)), leading ones first.
    ks
        Numbers of columns taken of both.

    Returns
    -------
    list of float
        Each in 0 to 1; two random subspaces of centred vectors give k / (V − 1) on average.

    Raises
    ------
    ArgumentError
        If the rows differ in number, or a k is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> subspace_overlap(np.eye(3)[:, :2], np.eye(3)[:, [1, 2]], [1, 2])
    [0.0, 0.5]
    """
    U = matrix("U", U)
    Q = matrix("Q", Q)
    xp = namespace(U, Q)
    if U.shape[0] != Q.shape[0]:
        raise ArgumentError(
            f"U and Q must have a row for each word; they have {U.shape[0]} and {Q.shape[0]}."
        )
    columns = min(U.shape[1], Q.shape[1])
    ks = list(check_iterable("ks", ks, "whole numbers"))
    for k in ks:
        if check_whole("ks", k) > columns:
            raise ArgumentError(
                f"ks must lie in 1 to {columns}, the columns given; got {k}."
            )
    squares = (U[:, :columns].T @ Q[:, :columns]) ** 2
    return [float(xp.sum(squares[:k, :k])) / k for k in ks]
