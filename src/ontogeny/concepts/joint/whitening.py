"""The leading directions of all checkpoints together: of the stack, or of its token kernel.

Stacked side by side, checkpoints X_1 ... X_S (n, m) make one matrix Y (n, S m). Its leading left
singular vectors come from the covariance ``Y^T Y``, or, where that is larger than the number of
tokens, from the kernel ``K = sum_t X_t X_t^T`` (n, n), to which checkpoints are added one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.linalg
from sklearn.utils.extmath import randomized_svd

SUBSPACE_STEPS = 8  # of the subspace iteration on a large kernel
EXACT_BELOW = 1500  # eigenvectors of smaller matrices are computed exactly
VANISHING = 1e-6  # eigenvalues below this part of the largest are rounding


def whitened(
    steps: Iterator[np.ndarray], shape: tuple[int, int], count: int, r: int, seed: int
) -> np.ndarray:
    """Return (n, k) uncorrelated columns of unit variance that span the r leading directions.

    k is less than r only where the checkpoints have no more directions.

    Parameters
    ----------
    steps
        Centred matrices (n, m) in float32, `count` of them.
    shape
        (n, m).
    """
    n, m = shape
    return _of_stack(list(steps), r) if count * m <= n else _of_kernel(steps, n, r, seed)


def _of_stack(steps: Sequence[np.ndarray], r: int) -> np.ndarray:
    Y = np.concatenate(steps, axis=1)
    values, vectors = _leading(Y.T @ Y, r, 0)
    return np.asarray(Y @ (vectors * (np.sqrt(len(Y)) / np.sqrt(values))).astype(np.float32))


def _of_kernel(steps: Iterator[np.ndarray], n: int, r: int, seed: int) -> np.ndarray:
    K = np.zeros((n, n), dtype=np.float32, order="F")
    for X in steps:  # only the upper triangle is filled; no second (n, n) matrix is made
        K = scipy.linalg.blas.ssyrk(1.0, X, beta=1.0, c=K, overwrite_c=True)
    for start in range(0, n, 512):  # mirror it, block by block
        stop = min(start + 512, n)
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
        values, vectors = values[::-1], vectors[:, ::-1]
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
    kept = values > VANISHING * values[0]
    return values[kept], vectors[:, kept]
