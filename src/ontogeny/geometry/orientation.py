"""Whether the subspaces of two trajectories are turned alike, more than by chance."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ..arrays import Array, matrix, to_numpy
from ..errors import ArgumentError, check_whole
from .nulls import NullDistribution

__all__ = ["random_subspace_angles", "subspace_overlap", "subspace_overlap_null"]


def subspace_overlap(W: Array, V: Array) -> float:
    """Return the mean squared cosine of the principal angles between two column spaces.

    1 where the smaller lies in the larger, 0 where they are orthogonal. Independent uniformly
    random subspaces of dimensions r ≤ s in R^m have s/m on average.

    Parameters
    ----------
    W, V
        Bases (m, r) and (m, s) with orthonormal columns, as `principal_basis` gives them.

    Raises
    ------
    ArgumentError
        If they differ in their number of rows, or their columns are not orthonormal.

    Examples
    --------
    >>> subspace_overlap(np.eye(4)[:, :2], np.eye(4)[:, 1:3])
    0.5
    """
    W, V = (_orthonormal(name, value) for name, value in (("W", W), ("V", V)))
    if len(W) != len(V):
        raise ArgumentError(
            f"W and V must have equally many rows; their shapes are {W.shape} and {V.shape}."
        )
    return float(np.sum((W.T @ V) ** 2) / min(W.shape[1], V.shape[1]))


def _orthonormal(name: str, value: Array) -> np.ndarray:
    basis = to_numpy(matrix(name, value)).astype(np.float64)
    if np.abs(basis.T @ basis - np.eye(basis.shape[1])).max() > 1e-4:
        raise ArgumentError(f"{name} must have orthonormal columns, as principal_basis gives them.")
    return basis


def random_subspace_angles(
    r: int, s: int, dimension: int, n: int = 1000, random_state: int = 0
) -> np.ndarray:
    """Draw the principal angles between independent, uniformly random subspaces of R^m.

    Their squared cosines are the eigenvalues of a matrix-variate Beta, drawn from two small Wishart
    matrices at a cost that does not grow with m.

    Parameters
    ----------
    r, s
        Dimensions of the two subspaces, at least 1.
    dimension
        m, at least r + s.
    n
        Number of draws.
    random_state
        Seed.

    Returns
    -------
    numpy.ndarray
        (n, min(r, s)) radians, smallest first.

    Raises
    ------
    ArgumentError
        If a number is out of range or not whole.

    References
    ----------
    P.-A. Absil, A. Edelman, P. Koev, On the largest principal angle between random subspaces,
    Linear Algebra and its Applications 414, 2006.

    Examples
    --------
    >>> angles = random_subspace_angles(3, 3, 16_384)
    >>> round(float(np.mean(np.cos(angles) ** 2) * 16_384), 1)
    3.0
    """
    low, high = sorted((check_whole("r", r), check_whole("s", s)))
    n = check_whole("n", n)
    if check_whole("dimension", dimension) < r + s:
        raise ArgumentError(f"dimension must be at least r + s = {r + s}; got {dimension}.")
    rng = np.random.default_rng(random_state)
    inside = rng.standard_normal((n, low, high))
    A, B = inside @ np.swapaxes(inside, 1, 2), _wishart(low, dimension - high, n, rng)
    squares = np.stack([eigh(a, a + b, eigvals_only=True)[::-1] for a, b in zip(A, B, strict=True)])
    return np.arccos(np.sqrt(np.clip(squares, 0.0, 1.0)))


def _wishart(size: int, freedom: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw Wishart matrices (n, size, size) by Bartlett's decomposition."""
    factor = np.tril(rng.standard_normal((n, size, size)), -1)
    diagonal = np.arange(size)
    factor[:, diagonal, diagonal] = np.sqrt(rng.chisquare(freedom - diagonal, (n, size)))
    return factor @ np.swapaxes(factor, 1, 2)


def subspace_overlap_null(
    W: Array, V: Array, n: int = 1000, random_state: int = 0
) -> NullDistribution:
    """Return `subspace_overlap` beside that of random subspaces of the same dimensions.

    `p_higher` says how often random subspaces overlap as much.

    Parameters
    ----------
    W, V
        As in `subspace_overlap`.
    n, random_state
        Draws and their seed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, V = (np.linalg.qr(rng.normal(size=(500, 3)))[0] for _ in range(2))
    >>> null = subspace_overlap_null(W, V)
    >>> bool(null.interval[0] <= null.observed <= null.interval[1])
    True
    """
    observed = subspace_overlap(W, V)
    (rows, r), s = to_numpy(W).shape, to_numpy(V).shape[1]
    angles = random_subspace_angles(r, s, rows, n, random_state)
    return NullDistribution(np.array(observed), np.mean(np.cos(angles) ** 2, axis=1))
