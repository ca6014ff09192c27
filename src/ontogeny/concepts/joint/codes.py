"""Sparse codes of tokens that all checkpoints share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..ica import decorrelate, rotate
from ..tensors import plain_tensors
from .crosscoder import crosscoder_codes
from .whitening import Gathered

METHODS = ("ica", "svd", "batchtopk", "l1")
TRAINED = ("batchtopk", "l1")
ITERATIONS, TOLERANCE = 150, 1e-4  # of ICA; sources of noise never settle


def raw_codes(
    gathered: Gathered, r: int, method: str, k: int, seeds: Sequence[int]
) -> list[np.ndarray]:
    """Return codes (n, r) before they are made sparse, one array for each seed."""
    with plain_tensors():
        if method in TRAINED:
            Y = torch.from_numpy(gathered.stack())
            found = [crosscoder_codes(Y, gathered.count, r, method, k, seed) for seed in seeds]
            return [codes.numpy() for codes in found]
        Z = gathered.whitened(r, seeds[0])
        sources = [Z if method == "svd" else _independent(Z, seed) for seed in seeds]
    return [np.pad(S, ((0, 0), (0, r - S.shape[1]))) for S in sources]


def _independent(Z: np.ndarray, seed: int) -> np.ndarray:
    """Return the independent sources of whitened columns (n, k).

    The start is drawn over tokens: it depends on the space that the columns span, and neither on
    their signs nor on the basis of any checkpoint.
    """
    generator = torch.Generator().manual_seed(seed)
    given = torch.from_numpy(Z)
    first = decorrelate(torch.randn(Z.shape, generator=generator).mT @ given)
    Q, _, _ = rotate(given, first, "logcosh", ITERATIONS, TOLERANCE)
    return np.asarray(Z @ Q.numpy().T)


def sparse(codes: np.ndarray, k: float) -> np.ndarray:
    """Return the n k largest positive values of codes (n, r), the rest 0; k need not be whole.

    Columns are first divided by their standard deviation, and turned so that they are skewed to
    the right: a sparse feature is mostly absent and sometimes large.

    Examples
    --------
    >>> sparse(np.array([[0.0, 1], [0, 2], [0, 3], [-9, 4]]), 1).round(2)
    array([[0.  , 0.  ],
           [0.  , 1.79],
           [0.  , 2.68],
           [2.31, 3.58]], dtype=float32)
    """
    centred = codes - codes.mean(axis=0)
    spread = codes.std(axis=0)
    used = spread > 1e-6 * max(float(np.abs(codes).max()), 1e-30)
    unit = np.where(used, centred, 0.0) / np.where(used, spread, 1.0)
    signs = np.where((unit**3).mean(axis=0) < 0, -1.0, 1.0)
    values = np.where(used, codes / np.where(used, spread, 1.0) * signs, 0.0).astype(np.float32)
    kept = min(round(len(values) * k), values.size)
    limit = max(float(np.partition(values, values.size - kept, axis=None)[-kept]), 0.0)
    return np.where((values >= limit) & (values > 0), values, np.float32(0.0))
