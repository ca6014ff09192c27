"""Distances that are norms of the difference W - V: column j is compared with column j.

They are metrics. They see every change of order, sign, scale and rotation of the columns, also
those that leave the factorisation A = U W^T as it is: align first, or use Procrustes.
"""

from __future__ import annotations

import math
from typing import Any

from ..arrays import Array
from ..errors import ArgumentError
from .pair import Pair, measured


def frobenius(W: Array, V: Array) -> Any:
    """Frobenius distance: the root of the sum of squared differences of the entries.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch.

    Returns
    -------
    float, or an array of shape (...)
        In the units of W.

    Raises
    ------
    ArgumentError
        If the shapes differ. ``NonFiniteError`` if an entry is NaN or infinite.

    Notes
    -----
    Bernas (2025), Definition 40, with the root that the definition drops. Invariant when both
    arguments are rotated from the left, or from the right by the same rotation.

    Examples
    --------
    >>> frobenius([[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
    5.0
    """
    return measured(frobenius_of, W, V)


def spectral(W: Array, V: Array) -> Any:
    """Spectral distance: the largest singular value of W - V.

    W and V have shape (..., m, r). Bernas (2025), Definition 41.

    Raises
    ------
    ArgumentError
        If the shapes differ. ``NonFiniteError`` if an entry is NaN or infinite.

    Examples
    --------
    >>> spectral([[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
    4.0
    """
    return measured(spectral_of, W, V)


def nuclear(W: Array, V: Array) -> Any:
    """Nuclear distance: the sum of the singular values of W - V.

    W and V have shape (..., m, r). Bernas (2025), Definition 42.

    Raises
    ------
    ArgumentError
        If the shapes differ. ``NonFiniteError`` if an entry is NaN or infinite.

    Examples
    --------
    >>> nuclear([[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
    7.0
    """
    return measured(nuclear_of, W, V)


def entrywise(W: Array, V: Array, p: float = 1.0) -> Any:
    """Entry-wise p-distance: the p-norm of W - V read as one long vector.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r).
    p
        At least 1; ``inf`` takes the largest difference. The default is 1 because 2 is Frobenius.

    Raises
    ------
    ArgumentError
        If the shapes differ or p is below 1.

    Notes
    -----
    Bernas (2025), Definition 43.

    Examples
    --------
    >>> entrywise([[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
    7.0
    """
    return measured(entrywise_of, W, V, p=p)


def schatten(W: Array, V: Array, p: float = 1.5) -> Any:
    """Schatten p-distance: the p-norm of the singular values of W - V.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r).
    p
        At least 1: 1 is the nuclear distance, 2 Frobenius, ``inf`` the spectral one; 1.5 by
        default, which is none of them.

    Raises
    ------
    ArgumentError
        If the shapes differ or p is below 1.

    Notes
    -----
    Bernas (2025), Definition 45.

    Examples
    --------
    >>> schatten([[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], p=2)
    5.0
    """
    return measured(schatten_of, W, V, p=p)


def frobenius_of(pair: Pair) -> Array:
    """Frobenius distance of every member of a pair of stacks."""
    return pair.xp.sqrt(pair.difference_squares)


def spectral_of(pair: Pair) -> Array:
    """Spectral distance of every member of a pair of stacks."""
    return pair.difference_spectrum[..., 0]


def nuclear_of(pair: Pair) -> Array:
    """Nuclear distance of every member of a pair of stacks."""
    return pair.xp.sum(pair.difference_spectrum, axis=-1)


def entrywise_of(pair: Pair, p: float = 1.0) -> Array:
    """Entry-wise p-distance of every member of a pair of stacks."""
    rows = pair.xp.reshape(pair.difference, (pair.difference.shape[0], -1))
    return vector_norm(pair, rows, p)


def schatten_of(pair: Pair, p: float = 1.5) -> Array:
    """Schatten p-distance of every member of a pair of stacks."""
    return vector_norm(pair, pair.difference_spectrum, p)


def vector_norm(pair: Pair, rows: Array, p: float) -> Array:
    """p-norm of every row of `rows`, scaled so that powers neither overflow nor vanish."""
    if not p >= 1:
        raise ArgumentError(f"p must be at least 1 (inf is allowed); got {p}.")
    xp = pair.xp
    size = xp.abs(rows)
    largest = xp.max(size, axis=-1)
    if math.isinf(p):
        return largest
    if p == 1:
        return xp.sum(size, axis=-1)
    scaled = size / xp.where(largest > 0, largest, xp.ones_like(largest))[..., None]
    return largest * xp.sum(scaled**p, axis=-1) ** (1.0 / p)
