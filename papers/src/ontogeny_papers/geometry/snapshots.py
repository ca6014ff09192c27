"""From T snapshots of a weight block to the (T, T) Gram matrix of its displacements.

The first snapshot is subtracted in float64 before anything is squared: weights move by a small
fraction of their norm, and the Gram matrix of the weights themselves would lose that fraction.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import is_torch_array
from scipy.linalg.blas import dsyrk

from ontogeny.arrays import Array, matrix, namespace, numpy_matrix, to_numpy
from ontogeny.errors import ArgumentError, check_whole

# Numbers converted to float64 at a time: 32 MiB, whatever the size of the block that is added.
CHUNK = 2**22
_TILE = 1024


class SnapshotGram:
    """Displacement Gram matrix of T snapshots, from slices of their coordinates.

    Feed it all coordinates of a weight block once, in any order and in slices of any size, for
    example rows of memory-mapped weights; memory beyond the slice stays bounded.

    Parameters
    ----------
    n_snapshots
        Number T of snapshots.

    Examples
    --------
    >>> path = np.arange(12.0).reshape(3, 4)
    >>> streaming = SnapshotGram(3)
    >>> streaming.add(path[:, :2]).add(path[:, 2:]).gram
    array([[  0.,   0.,   0.],
           [  0.,  64., 128.],
           [  0., 128., 256.]])
    >>> streaming.dimension
    4
    """

    def __init__(self, n_snapshots: int) -> None:
        n_snapshots = check_whole("n_snapshots", n_snapshots)
        # Only the upper triangle.
        self._gram = np.zeros((n_snapshots, n_snapshots), order="F")
        self._dimension = 0

    @property
    def gram(self) -> np.ndarray:
        """Gram matrix ⟨w_s − w_0, w_t − w_0⟩ of shape (T, T), float64."""
        full = self._gram.copy(order="C")
        for start in range(0, len(full), _TILE):  # in tiles: no second copy
            stop = start + _TILE
            full[stop:, start:stop] = full[start:stop, stop:].T
            tile = full[start:stop, start:stop]
            tile[:] = np.triu(tile) + np.triu(tile, 1).T
        return full

    @property
    def dimension(self) -> int:
        """Number of coordinates added so far."""
        return self._dimension

    def add(self, block: Array) -> SnapshotGram:
        """Add the coordinates of `block` (T, ...), of any real dtype; return self.

        Raises
        ------
        ArgumentError
            If the first dimension of `block` is not T, or it is empty or not numeric.
        NonFiniteError
            If it holds NaN or infinity; nothing of it is added then.
        """
        count = len(self._gram)
        if not hasattr(block, "shape") or block.ndim < 2 or block.shape[0] != count:
            shape = getattr(block, "shape", None)
            came = type(block).__name__ if shape is None else f"shape {tuple(shape)}"
            raise ArgumentError(
                f"block must have shape ({count}, ...): snapshots first; got {came}."
            )
        flat = namespace(block).reshape(block, (count, -1))
        width = max(1, CHUNK // count)
        starts = range(0, max(flat.shape[1], 1), width)
        for start in starts:
            matrix("block", flat[:, start : start + width])
        for start in starts:
            self._add(flat[:, start : start + width])
        self._dimension += flat.shape[1]
        return self

    def _add(self, chunk: Array) -> None:
        xp = namespace(chunk)
        moved = xp.astype(chunk, xp.float64)
        moved = moved - moved[:1, :]
        if is_torch_array(moved) and moved.device.type != "cpu":
            self._gram += to_numpy(moved @ moved.T)
        else:  # half the work, and no second matrix
            self._gram = dsyrk(
                1.0, to_numpy(moved).T, beta=1.0, c=self._gram, trans=1, overwrite_c=1
            )


def gram(snapshots: Array) -> np.ndarray:
    """Return the displacement Gram matrix ⟨w_s − w_0, w_t − w_0⟩ of snapshots (T, ...).

    Parameters
    ----------
    snapshots
        The weight block at T steps, (T, ...), of any real dtype; NumPy, memory-mapped or PyTorch.

    Returns
    -------
    numpy.ndarray
        Shape (T, T), float64; its first row and column are zero.

    Raises
    ------
    ArgumentError
        If there are fewer than two dimensions or no number at all.
    NonFiniteError
        If a value is NaN or infinite.

    Examples
    --------
    >>> gram(np.array([[1.0, 1.0], [1.0, 2.0], [4.0, 1.0]]))
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 9.]])
    """
    if not hasattr(snapshots, "shape"):
        snapshots = matrix("snapshots", snapshots, ndim=-1)
    if snapshots.ndim < 2 or 0 in tuple(snapshots.shape):
        raise ArgumentError(
            "snapshots must have shape (steps, ...), none of it empty; "
            f"its shape is {tuple(snapshots.shape)}."
        )
    return SnapshotGram(snapshots.shape[0]).add(snapshots).gram


def check_gram(value: np.ndarray) -> np.ndarray:
    """Return `value` as a float64 displacement Gram matrix, if it is one.

    Raises
    ------
    ArgumentError
        If it is not square, not symmetric, or not taken from the first snapshot.
    NonFiniteError
        If it holds NaN or infinity.

    Examples
    --------
    >>> check_gram([[0, 0], [0, 4]])
    array([[0., 0.],
           [0., 4.]])
    """
    argument = numpy_matrix("gram", value)
    if argument.shape[0] != argument.shape[1]:
        raise ArgumentError(
            f"gram must be a square (steps, steps) matrix, as ontogeny.geometry.gram returns; "
            f"its shape is {argument.shape}. Snapshots go into gram() first."
        )
    size = np.abs(argument).max()
    if (
        np.abs(argument - argument.T).max() > 1e-6 * size
        or np.abs(argument[0]).max() > 1e-6 * size
    ):
        raise ArgumentError(
            "gram must be the symmetric Gram matrix of displacements from the first snapshot "
            "(first row and column zero), as ontogeny.geometry.gram returns."
        )
    return argument


def increments_gram(gram: np.ndarray) -> np.ndarray:
    """Return the Gram matrix ⟨w_{s+1} − w_s, w_{t+1} − w_t⟩, (..., T−1, T−1), of the increments.

    Parameters
    ----------
    gram
        Displacement Gram matrix (T, T), or a stack of them (..., T, T).

    Examples
    --------
    >>> increments_gram(np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return np.diff(np.diff(gram, axis=-1), axis=-2)
