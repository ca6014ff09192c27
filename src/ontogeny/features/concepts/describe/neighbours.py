"""The concepts that write in nearly the same direction."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ....arrays import Array, numpy_matrix
from ....errors import ArgumentError, check_whole


def neighbours(decoders: Array, n: int = 3) -> xr.Dataset:
    """Return the nearest concepts of each concept, by the angle between their decoders.

    Parameters
    ----------
    decoders
        (r, m) one direction for each concept.
    n
        How many neighbours.

    Returns
    -------
    xarray.Dataset
        ``near(concept, neighbour)``, the number of the concept, largest absolute cosine first,
        of equals the smaller number; ``near_cosine``, of the same shape, with its sign. -1 and 0
        where there are fewer others, and for decoders that are 0.

    Raises
    ------
    ArgumentError
        If `decoders` is no matrix or `n` no positive whole number.
    NonFiniteError
        If a number is NaN or infinite.

    Examples
    --------
    >>> near = neighbours(np.array([[1.0, 0], [-3, 0], [1, 1]]), 1)
    >>> near.near.values.tolist(), near.near_cosine.values.round(2).tolist()
    ([[1], [0], [0]], [[-1.0], [-1.0], [0.71]])
    """
    n = check_whole("n", n)
    D = numpy_matrix("decoders", decoders)
    largest = np.abs(D).max(axis=1, keepdims=True)
    D = D / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(D, axis=1)
    unit = D / np.where(norm > 0, norm, 1.0)[:, None]
    return _nearest(unit @ unit.T, norm > 0, n)


def neighbours_of_gram(gram: Array, n: int = 3) -> xr.Dataset:
    """Return the same as `neighbours` from the inner products (r, r) of the decoders.

    They may be taken in any metric, such as where activations are white. A decoder is 0 where its
    product with itself is.

    Raises
    ------
    ArgumentError
        If `gram` is no square matrix or `n` no positive whole number.
    NonFiniteError
        If a number is NaN or infinite.

    Examples
    --------
    >>> near = neighbours_of_gram(np.array([[1.0, -3, 1], [-3, 9, -3], [1, -3, 2]]), 1)
    >>> near.near.values.tolist(), near.near_cosine.values.round(2).tolist()
    ([[1], [0], [0]], [[-1.0], [-1.0], [0.71]])
    """
    n = check_whole("n", n)
    G = numpy_matrix("gram", gram)
    if G.shape[0] != G.shape[1]:
        raise ArgumentError(f"gram must be a square matrix; its shape is {G.shape}.")
    norm = np.sqrt(np.maximum(np.diag(G), 0.0))
    by = np.where(norm > 0, norm, 1.0)
    return _nearest(np.clip(G / by[:, None] / by, -1.0, 1.0), norm > 0, n)


def _nearest(cosines: np.ndarray, there: np.ndarray, n: int) -> xr.Dataset:
    """Return neighbours by the cosines (r, r) of those decoders that are `there` (r,), not 0."""
    # Rounding must not order equal angles.
    size = np.where(there[:, None] & there, np.abs(cosines).round(12), -1.0)
    np.fill_diagonal(size, -1.0)
    order = np.argsort(-size, axis=1, kind="stable")[:, :n]
    exists = np.take_along_axis(size, order, axis=1) >= 0
    missing = ((0, 0), (0, n - order.shape[1]))
    near = np.pad(np.where(exists, order, -1), missing, constant_values=-1)
    cosine = np.where(exists, np.take_along_axis(cosines, order, axis=1), 0.0)
    return xr.Dataset(
        {
            "near": (("concept", "neighbour"), near),
            "near_cosine": (("concept", "neighbour"), np.pad(cosine, missing)),
        }
    )
