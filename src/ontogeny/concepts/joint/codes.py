"""Sparse codes of tokens that all checkpoints share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg
import scipy.stats
import torch
from torch import Tensor

from ..ica import decorrelate, rotate
from ..tensors import plain_tensors
from .crosscoder import crosscoder_codes
from .presence import inverse_of
from .whitening import Gathered

METHODS = ("ica", "svd", "batchtopk", "l1")
TRAINED = ("batchtopk", "l1")
ITERATIONS, TOLERANCE = 60, 1e-4  # of ICA with either contrast; sources of noise never settle
REFINED = 2  # times that codes are read anew from what all checkpoints write
RIDGE = 1e-2  # added to the covariance of the residual, against its mean variance
SKEWED = 1.0  # skewness of sparse codes, at least; ICA of noise alone finds up to half of it
ROUNDING = 1e-3  # the same against the mean variance of the activations, where nothing is left


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
    for _ in range(REFINED if method == "ica" and Z.shape[1] else 0):
        sources = refined(sources, k, gathered)
    return [np.pad(S, ((0, 0), (0, r - S.shape[1]))) for S in sources]


def _independent(Z: np.ndarray, seed: int) -> np.ndarray:
    """Return the independent sources of whitened columns (n, k).

    The start is drawn over tokens: it depends on the space that the columns span, and neither on
    their signs nor on the basis of any checkpoint. Skewness, which sparse codes have, leads other
    seeds to the same sources more often; the logcosh contrast from there on takes less chance for
    a source.
    """
    generator = torch.Generator().manual_seed(seed)
    given = torch.from_numpy(Z)
    first = decorrelate(torch.randn(Z.shape, generator=generator).mT @ given)
    near, _, _ = rotate(given, first, _skewness, ITERATIONS, TOLERANCE)
    Q, _, _ = rotate(given, near, "logcosh", ITERATIONS, TOLERANCE)
    return np.asarray(Z @ Q.numpy().T)


def _skewness(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the contrast of skewed sources: a code is mostly 0, and else positive."""
    return Y.square(), 2 * Y.mean(1)


def refined(sources: Sequence[np.ndarray], k: float, gathered: Gathered) -> list[np.ndarray]:
    """Return the codes (n, r) of several fits, with what they leave of each token read anew.

    The leading directions of the stack do not hold all of a weak concept. Every checkpoint in full
    does. Where its decoder is d_t and N_t the covariance of what sparse codes leave, x_t,
    generalised least squares add ``sum_t d_t N_t^-1 x_t / sum_t d_t N_t^-1 d_t`` to the code of a
    token: tokens that write along a concept's decoder, but have no code of it, get one. Sources
    that are hardly skewed are no sparse codes, and stay as they are.
    """
    codes = [sparse(S, k) for S in sources]
    centred = [U - U.mean(axis=0) for U in codes]
    grams = [(u.T @ u).astype(np.float64) for u in centred]
    solvers = [u @ inverse_of(G).astype(np.float32) for u, G in zip(centred, grams, strict=True)]
    readings = [np.zeros_like(U) for U in codes]
    information = [np.zeros_like(G) for G in grams]
    for X in gathered.steps():
        moment = (X.T @ X).astype(np.float64)
        for i, solver in enumerate(solvers):
            D = (solver.T @ X).astype(np.float64)
            readout = _readout(D, grams[i], moment)
            readings[i] += X @ readout.astype(np.float32)
            information[i] += D @ readout
    refit = []
    for S, U, u, read, own in zip(sources, codes, centred, readings, information, strict=True):
        # What all checkpoints read of the residual alone: with what the codes themselves write
        # taken off, a code only moves by what the sparse codes have lost.
        full = U + _divided(read - u @ own.astype(np.float32), np.diag(own))
        refit.append(np.where(skewness(full) > SKEWED, full, S))
    return refit


def _readout(D: np.ndarray, gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Return ``N^-1 D^T`` (m, r) of decoders D, with N what least squares leave of `moment`."""
    left = moment - D.T @ gram @ D
    size = max(RIDGE * np.trace(left), ROUNDING * np.trace(moment), 1e-30) / len(left)
    left.flat[:: len(left) + 1] += size
    scale = float(np.trace(left)) / len(left)
    return np.asarray(scipy.linalg.solve(left / scale, D.T, assume_a="pos")) / scale


def _divided(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return columns of `values` divided by numbers; those divided by 0 are left out."""
    used = by > 1e-12 * max(float(by.max(initial=0)), 1e-30)
    return np.where(used, values / np.where(used, by, 1.0), 0).astype(np.float32)


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
    spread = codes.std(axis=0)
    used = spread > 1e-6 * max(float(np.abs(codes).max()), 1e-30)
    signs = np.where(skewness(codes) < 0, -1.0, 1.0)
    values = np.where(used, codes / np.where(used, spread, 1.0) * signs, 0.0).astype(np.float32)
    # One limit for the whole table, not one a token: a text full of concepts may have more than k.
    kept = min(round(len(values) * k), values.size)
    limit = max(float(np.partition(values, values.size - kept, axis=None)[-kept]), 0.0)
    return np.where((values >= limit) & (values > 0), values, np.float32(0.0))


def skewness(codes: np.ndarray) -> np.ndarray:
    """Return the third standardised moment (r,) of columns of codes; 0 of constant ones."""
    used = codes.std(axis=0) > 1e-6 * max(float(np.abs(codes).max()), 1e-30)
    found = np.zeros(codes.shape[1])
    found[used] = scipy.stats.skew(codes[:, used], axis=0)
    return found
