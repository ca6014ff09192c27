"""The leading directions of all checkpoints together: of the stack, or of its token kernel.

Stacked side by side, checkpoints X_1 ... X_S (n, m) make one matrix Y (n, S m). Its leading left
singular vectors come from the covariance ``Y^T Y``, or, where that is larger than the number of
tokens, from the kernel ``K = sum_t X_t X_t^T`` (n, n), to which checkpoints are added one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg
from sklearn.utils.extmath import randomized_svd

SUBSPACE_STEPS = 8  # of the subspace iteration on a large kernel
EXACT_BELOW = 1500  # eigenvectors of smaller matrices are computed exactly
BLOCK = 512  # rows of a kernel that are mirrored at once
VANISHING = 1e-6  # eigenvalues below this part of the largest are rounding


class Gathered:
    """What the fit needs of its checkpoints, which are added one by one.

    Where the stack is larger than the kernel, only copies in half precision are kept.

    Parameters
    ----------
    n, m
        Tokens and features.
    count
        How many checkpoints will be added, at most; of unequal width: 1, with `m` for all of them.
    stacked
        Whether they must be laid side by side, as trained methods need them; else only where the
        stack is smaller than the kernel.
    """

    def __init__(self, n: int, m: int, count: int, *, stacked: bool = False) -> None:
        self.n = n
        self._parts: list[np.ndarray] = []
        self._kernel: np.ndarray | None = None
        if self._takes_kernel(n, m, count, stacked):
            self._kernel = np.zeros((n, n), dtype=np.float32, order="F")

    @classmethod
    def size(cls, n: int, m: int, count: int, *, stacked: bool = False) -> int:
        """Return the bytes that such checkpoints take: the kernel and copies, or stack and copies.

        Examples
        --------
        >>> Gathered.size(5000, 768, 12) / 1e6
        192.16
        """
        if cls._takes_kernel(n, m, count, stacked):
            return 4 * n * n + 2 * count * n * m
        return 8 * count * n * m

    @staticmethod
    def _takes_kernel(n: int, m: int, count: int, stacked: bool) -> bool:
        return not stacked and count * m > n

    @property
    def widths(self) -> list[int]:
        """The features of each checkpoint that was added."""
        return [X.shape[1] for X in self._parts]

    def add(self, X: np.ndarray) -> None:
        """Add a centred checkpoint (n, m) in float32."""
        if self._kernel is None:
            self._parts.append(X)
        else:
            self._parts.append((X * _unit(X)).astype(np.float16))
            # Only the upper triangle is filled; no second (n, n) matrix is made.
            self._kernel = scipy.linalg.blas.ssyrk(
                1.0, X, beta=1.0, c=self._kernel, overwrite_c=True
            )

    def steps(self) -> Iterator[np.ndarray]:
        """Give the checkpoints (n, m) that were added, in float32."""
        for X in self._parts:
            yield X if X.dtype == np.float32 else X.astype(np.float32) / _unit(X)

    def stack(self) -> np.ndarray:
        """Return all checkpoints side by side, (n, S m)."""
        return np.concatenate(list(self.steps()), axis=1)

    def whitened(self, r: int, seed: int) -> np.ndarray:
        """Return (n, k) uncorrelated columns of unit variance that span the r leading directions.

        k is less than r only where the checkpoints have no more directions.
        """
        if self._kernel is None:
            return of_stack(self.stack(), r)
        return of_kernel(self._kernel, r, seed)


def _unit(X: np.ndarray) -> np.float32:
    """Return by what values that are kept in half precision are multiplied."""
    return np.float32(np.sqrt(X.shape[1]))


def of_stack(Y: np.ndarray, r: int) -> np.ndarray:
    """Return whitened columns (n, k) of the stack (n, S m)."""
    values, vectors = _leading(Y.T @ Y, r, 0)
    return np.asarray(
        Y @ (vectors * (np.sqrt(len(Y)) / np.sqrt(values))).astype(np.float32)
    )


def of_kernel(K: np.ndarray, r: int, seed: int) -> np.ndarray:
    """Return whitened columns (n, k) from the upper triangle of the kernel; the lower is filled."""
    n = len(K)
    for start in range(0, n, BLOCK):  # mirror it, block by block
        stop = min(start + BLOCK, n)
        K[stop:, start:stop] = K[start:stop, stop:].T
        block = np.triu(K[start:stop, start:stop])
        K[start:stop, start:stop] = block + np.triu(block, 1).T
    _, vectors = _leading(K, r, seed)
    return np.ascontiguousarray(vectors * np.float32(np.sqrt(n)), dtype=np.float32)


def _leading(C: np.ndarray, r: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues, descending, and eigenvectors; rounding is left out."""
    size = len(C)
    k = min(r, size)
    if size <= EXACT_BELOW or k > size // 4:
        values, vectors = scipy.linalg.eigh(C, subset_by_index=[size - k, size - 1])
        values = values[::-1]
        vectors = vectors[:, ::-1]
    else:
        vectors, values, _ = randomized_svd(
            C,
            k,
            n_oversamples=max(10, k // 5),
            n_iter=SUBSPACE_STEPS,
            power_iteration_normalizer="QR",
            random_state=seed,
            flip_sign=False,
        )
    is_large = values > VANISHING * values[0]
    return values[is_large], vectors[:, is_large]
