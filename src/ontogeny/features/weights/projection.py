"""The top principal components of a path of weights, from the Gram matrix of its snapshots."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, to_numpy
from ...errors import ArgumentError, check_whole
from ...geometry.rank import ROUNDING, centred
from .snapshots import CHUNK, check_gram
from .snapshots import gram as displacement_gram


def principal_coefficients(gram: np.ndarray, k: int, end: int | None = None) -> np.ndarray:
    """Return how the top principal components are made of the snapshots' displacements.

    Parameters
    ----------
    gram
        Displacement Gram matrix (T, T).
    k
        Number of components, at least 1.
    end
        Only the first `end` snapshots count (the prefix), at least 2; default all.

    Returns
    -------
    numpy.ndarray
        (end, k') with k' ≤ k; displacements (end, d) transposed times this is the basis (d, k').

    Raises
    ------
    ArgumentError
        If `k` or `end` is out of range.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.array([3.0, 4.0])
    >>> np.abs(line.T @ principal_coefficients(line @ line.T, k=1)).round(6).ravel()
    array([0.6, 0.8])
    """
    known = check_gram(gram)
    if len(known) < 2:
        raise ArgumentError("the directions of a path need at least 2 snapshots; there is 1.")
    k, end = check_whole("k", k), check_whole("end", len(known) if end is None else end, minimum=2)
    if end > len(known):
        raise ArgumentError(f"end must be from 2 to {len(known)}, the snapshots; got {end}.")
    values, vectors = np.linalg.eigh(centred(known[:end, :end]))
    kept = np.flatnonzero(values > ROUNDING * max(values[-1], np.finfo(float).tiny))[::-1][:k]
    vectors = vectors[:, kept]
    # They sum to zero, so the mean drops out; exactly so, or a small component carries the first.
    return (vectors - vectors.mean(axis=0)) / np.sqrt(values[kept])


def principal_basis(
    snapshots: Array, k: int, *, gram: np.ndarray | None = None, end: int | None = None
) -> np.ndarray:
    """Return the top principal components of a trajectory as an orthonormal basis.

    They come from the (T, T) Gram matrix in float64; the coordinates are read once, in slices.

    Parameters
    ----------
    snapshots
        A weight block at T steps, (T, ...); may be memory-mapped.
    k
        Number of components, at least 1.
    gram
        Its displacement Gram matrix (T, T), if known.
    end
        Only the first `end` snapshots count (the prefix), at least 2; default all.

    Returns
    -------
    numpy.ndarray
        (coordinates, k') float64 with orthonormal columns; k' < k where the path has fewer
        directions, 0 where nothing moves.

    Raises
    ------
    ArgumentError
        If `k` or `end` is out of range, or a shape is wrong.
    NonFiniteError
        If a value is NaN or infinite.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.array([3.0, 4.0])
    >>> principal_basis(line, k=2).shape
    (2, 1)
    """
    known = displacement_gram(snapshots) if gram is None else check_gram(gram)
    if len(snapshots) != len(known):
        raise ArgumentError(f"gram is of {len(known)} snapshots; snapshots has {len(snapshots)}.")
    weights = principal_coefficients(known, k, end)
    flat = snapshots[: len(weights)].reshape(len(weights), -1)
    basis = np.empty((flat.shape[1], weights.shape[1]))
    width = max(1, CHUNK // len(weights))
    for start in range(0, len(basis), width):
        chunk = to_numpy(flat[:, start : start + width]).astype(np.float64)
        basis[start : start + width] = (chunk - chunk[:1]).T @ weights
    # Components far below the first come out slightly oblique: removed, leaving spans in order.
    oblique = np.linalg.cholesky(basis.T @ basis)
    return basis @ np.linalg.inv(oblique).T
