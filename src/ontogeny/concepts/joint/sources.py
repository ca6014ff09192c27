"""Independent sources that the data determine, found without a seed; and whether halves agree.

The symmetric iteration of ICA is chaotic at first: rounding of 1e-6 grows to order 1, and half of
the sources of a fit are arbitrary. Here every source is climbed to on its own, from the tokens that
stand out most: nothing depends on a draw, and a source that is found depends on no other.
"""

from __future__ import annotations

import numpy as np
import scipy.stats
import torch
from torch import Tensor

from ..ica import decorrelate, rotate

STARTS = 300  # tokens of largest whitened norm that are climbed from
# Iterations of a climb at most; 1 - |cosine| of an iteration that ends it.
CLIMB = 40
TURN = 1e-8
SAME = 0.5  # |cosine| of two ends of climbs that are one source
SKEWED = 0.5  # skewness of a source at least
# Starts of the symmetric iteration where nothing is skewed, the best counts.
DRAWS = 20
FEW = 4
SMALL = 20_000  # numbers of a matrix that is small enough for all of these starts
# Of it, with either contrast; sources of noise never settle.
ITERATIONS = 60
TOLERANCE = 1e-4
FLAT = 1e-6  # variance of a direction on half of the tokens, against the largest, that is none


def unmixing(Z: np.ndarray, r: int, seed: int | None = None) -> np.ndarray:
    """Return unit rows (c, k) of at most `r` independent sources of whitened columns (n, k).

    Climbs on the skewness begin at the tokens of largest norm (with a seed, at random ones); those
    that end at one place are one source. What was found is projected out, and the rest searched
    again. Codes that are not skewed, such as waves, are found by the symmetric iteration instead:
    the best of 20 starts (of 4, where the matrix is large).
    """
    n, k = Z.shape
    rows = np.zeros((0, k), dtype=Z.dtype)
    rest = np.eye(k, dtype=Z.dtype)
    # The second is about the largest skewness that climbs find in Gaussian noise (n, k): where all
    # is noise; once a source is there, less does.
    limit = max(SKEWED, float(0.7 * k**1.5 / n + 4 * np.sqrt(k / n)))
    while len(rows) < r and rest.shape[1]:
        residual = Z @ rest
        ends = _climbed(residual, residual[_starts(residual, seed)])
        skewness = _skewness(residual @ ends.T)
        if skewness.max() < limit:
            break
        picks = _distinct(ends, skewness)
        picks = picks[skewness[picks] >= SKEWED]
        limit = SKEWED
        rows = np.concatenate([rows, (ends[picks] @ rest.T)[: r - len(rows)]])
        _, values, axes = np.linalg.svd(rows.astype(np.float64))
        rest = np.ascontiguousarray(
            axes[int((values > 1e-3 * values[0]).sum()) :].T, Z.dtype
        )
    return rows if len(rows) else _symmetric(Z, seed)


def _starts(Z: np.ndarray, seed: int | None) -> np.ndarray:
    if seed is not None:
        rng = np.random.default_rng(seed)
        return np.sort(rng.choice(len(Z), min(STARTS, len(Z)), replace=False))
    return np.argsort(-np.einsum("nk,nk->n", Z, Z), kind="stable")[:STARTS]


def _climbed(Z: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return where fixed-point iterations on the skewness from rows B (b, k) end."""
    B = _unit(B)
    moving = np.arange(len(B))
    for _ in range(CLIMB):
        if not len(moving):
            break
        Y = Z @ B[moving].T
        new = _unit(
            (Y * Y).T @ Z / np.float32(len(Z)) - 2 * Y.mean(axis=0)[:, None] * B[moving]
        )
        cosine = (new * B[moving]).sum(axis=1)
        B[moving] = new * np.where(cosine < 0, -1, 1)[:, None].astype(Z.dtype)
        moving = moving[1 - np.abs(cosine) > TURN]
    return B


def _distinct(B: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return which rows of B stand for all others: of rows that are near, that of highest score."""
    near = np.abs(B @ B.T) >= SAME
    is_candidate = np.ones(len(B), dtype=bool)
    members = []
    for i in np.argsort(-score, kind="stable"):
        if is_candidate[i]:
            members.append(i)
            is_candidate &= ~near[i]
    return np.array(members, dtype=int)


def _symmetric(Z: np.ndarray, seed: int | None) -> np.ndarray:
    """Return the rotation (k, k) whose sources are least Gaussian, of several starts."""
    whitened = torch.from_numpy(np.ascontiguousarray(Z))
    best = None
    most = -np.inf
    normal = np.log(
        np.cosh(scipy.stats.norm.ppf((np.arange(4000) + 0.5) / 4000))
    ).mean()
    generator = torch.Generator().manual_seed(0 if seed is None else seed)
    for _ in range(DRAWS if Z.size <= SMALL else FEW):
        # Drawn over tokens: the start depends on the space that the columns span, and not on the
        # basis of any checkpoint.
        first = decorrelate(
            torch.randn(Z.shape, generator=generator).to(whitened).mT @ whitened
        )
        near, _, _ = rotate(whitened, first, _skewed, ITERATIONS, TOLERANCE)
        Q, _, _ = rotate(whitened, near, "logcosh", ITERATIONS, TOLERANCE)
        Y = Z @ Q.numpy().T
        negentropy = ((np.logaddexp(Y, -Y) - np.log(2)).mean(axis=0) - normal) ** 2
        if negentropy.sum() > most:
            best = Q.numpy()
            most = float(negentropy.sum())
    assert best is not None
    return np.asarray(best)


def _skewed(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the contrast of skewed sources: a code is mostly 0, and else positive."""
    return Y.square(), 2 * Y.mean(1)


def of_half(Z: np.ndarray, rows: np.ndarray, r: int) -> np.ndarray:
    """Return the sources (n, c) of all tokens by a fit to some of them, `rows` (n,) bool."""
    part = Z[rows].astype(np.float64)
    mean = part.mean(axis=0)
    values, axes = np.linalg.eigh((part - mean).T @ (part - mean) / len(part))
    used = values > FLAT * values[-1]
    moved = ((Z - mean) @ (axes[:, used] / np.sqrt(values[used]))).astype(Z.dtype)
    return np.asarray(moved @ unmixing(np.ascontiguousarray(moved[rows]), r).T)


def _skewness(Y: np.ndarray) -> np.ndarray:
    squares = Y * Y  # Y**3 takes 20 times as long as two products
    spread = np.maximum(squares.mean(axis=0), 1e-30)
    return np.asarray((squares * Y).mean(axis=0) / spread**1.5)


def _unit(B: np.ndarray) -> np.ndarray:
    return np.asarray(B / np.maximum(np.linalg.norm(B, axis=1, keepdims=True), 1e-30))
