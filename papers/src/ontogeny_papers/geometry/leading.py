"""The leading variances of very many snapshots, without their Gram matrix.

Ten thousand snapshots have a Gram matrix of 800 MB. Block Lanczos needs a few passes over the
snapshots instead, in slices, and a few dozen vectors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ontogeny.arrays import Array, numpy_matrix
from ontogeny.geometry.rank import components_holding

from .snapshots import CHUNK

MANY = 2000
"""Up to so many snapshots the Gram matrix is cheap."""

_BLOCK = 16
_BLOCKS = 8
_TOLERANCE = 1e-7  # of the variance: largest residual of a component that counts


def leading_rank(
    snapshots: Array, variance: float, random_state: int = 0
) -> int | None:
    """Return how many principal components hold `variance` of the snapshots (T, ...).

    None if more components are needed than some dozens of vectors can show; the Gram matrix tells
    then. Partial sums of Lanczos values never exceed the true ones, and components count only once
    their residuals are negligible.

    Raises
    ------
    NonFiniteError
        If a value is NaN or infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> leading_rank(np.cumsum(rng.normal(size=(400, 3000)), axis=0), 0.9)
    6
    """
    flat = snapshots.reshape(snapshots.shape[0], -1)
    total = _total(flat)
    if total == 0:
        return 0
    rng = np.random.default_rng(random_state)
    width = min(_BLOCK, len(flat) - 1)
    block = np.linalg.qr(_centred(rng.standard_normal((len(flat), width))))[0]
    basis = np.empty((len(flat), 0))
    image = np.empty((len(flat), 0))
    for _ in range(_BLOCKS):
        basis = np.hstack([basis, block])
        image = np.hstack([image, _applied(flat, block)])
        small = basis.T @ image
        values, vectors = np.linalg.eigh((small + small.T) / 2)
        values = values[::-1]
        vectors = vectors[:, ::-1]
        is_enough = np.cumsum(values) >= variance * total
        if is_enough.any():
            k = int(np.argmax(is_enough)) + 1
            rest = image @ vectors[:, :k] - basis @ (vectors[:, :k] * values[:k])
            if np.linalg.norm(rest, axis=0).max() <= _TOLERANCE * total:
                padded = np.append(values[:k], max(total - values[:k].sum(), 0.0))
                return int(components_holding(variance, padded))
        block = _new_directions(image[:, -block.shape[1] :], basis, total)
        if not block.shape[1]:
            break
    return None


def _new_directions(block: np.ndarray, basis: np.ndarray, total: float) -> np.ndarray:
    """Return an orthonormal basis of what `block` has beyond `basis`, without rounding noise."""
    for _ in range(2):  # once is not enough in floating point
        block = block - basis @ (basis.T @ block)
    left, values, _ = np.linalg.svd(_centred(block), full_matrices=False)
    left = left[:, values > 1e-12 * total]
    return np.linalg.qr(left - basis @ (basis.T @ left))[0] if left.shape[1] else left


def _slices(flat: Array) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield displacements from the first snapshot, some rows at a time, in float64."""
    first = numpy_matrix("snapshots", flat[:1])
    rows = max(1, CHUNK // flat.shape[1])
    for start in range(0, flat.shape[0], rows):
        part = slice(start, min(start + rows, flat.shape[0]))
        moved = numpy_matrix("snapshots", flat[part])
        moved -= first
        yield part, moved


def _total(flat: Array) -> float:
    """Return the summed squared distance of the snapshots from their mean."""
    squares = 0.0
    mean = np.zeros(flat.shape[1])
    for _, moved in _slices(flat):
        squares += float(np.vdot(moved, moved))
        mean += moved.sum(axis=0)
    return max(squares - float(mean @ mean) / len(flat), 0.0)


def _applied(flat: Array, block: np.ndarray) -> np.ndarray:
    """Return the centred Gram matrix times `block`, in two passes."""
    inner = np.zeros((flat.shape[1], block.shape[1]))
    for part, moved in _slices(flat):
        inner += moved.T @ block[part]
    result = np.empty_like(block)
    for part, moved in _slices(flat):
        result[part] = moved @ inner
    return _centred(result)


def _centred(block: np.ndarray) -> np.ndarray:
    return block - block.mean(axis=0)
