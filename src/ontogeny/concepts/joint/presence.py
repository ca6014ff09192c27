"""What shared codes say of one checkpoint: decoders, how strong and how readable each concept is.

The codes U (n, r) are the same at every checkpoint, so a checkpoint is one least-squares fit:
nothing is trained, and a checkpoint that the codes were not fitted on is treated like the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

RIDGE = 1e-2  # of the readout, against the mean variance of a feature
WHITENING = 1e-3  # added to the covariance, against the mean variance of a feature


@dataclass(frozen=True, eq=False)
class Presence:
    """Concepts at S checkpoints.

    Attributes
    ----------
    decoders
        (S, r, m) float32: what one unit of code writes, in standard deviations of the checkpoint.
    strength
        (S, r): root of the share of the checkpoint's variance that the concept writes, with what
        noise alone would give taken off; 0 where it is not more than noise.
    floor
        (S, r): what noise alone would give.
    readable
        (S, r): correlation of the codes with a sparse linear readout of that checkpoint alone, on
        texts that the readout was not fitted on.
    explained
        (S,): share of the checkpoint's variance that the shared codes explain.
    whitened
        (S, r, r) float32: inner products of the decoders where activations are white.
    influence
        (S, blocks, r) float32: by how much each block of texts moves the squared strength.
    spread
        (S, r): standard deviation of the squared strength by noise alone.
    """

    decoders: np.ndarray
    strength: np.ndarray
    floor: np.ndarray
    readable: np.ndarray
    explained: np.ndarray
    whitened: np.ndarray
    influence: np.ndarray
    spread: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Presence]) -> Presence:
        """Return several runs of checkpoints as one."""
        return cls(*(np.concatenate([getattr(p, f) for p in parts]) for f in cls.__annotations__))


class Decoder:
    """Least squares on codes (n, r) that stay the same, prepared once for all checkpoints.

    Parameters
    ----------
    codes
        (n, r) sparse codes.
    half
        (n,) True for the tokens of one half of the texts.
    block
        (n,) block of texts that each token belongs to.
    """

    def __init__(self, codes: np.ndarray, half: np.ndarray, block: np.ndarray) -> None:
        self.codes, self.half = codes, half
        self.centred = codes - codes.mean(axis=0)
        gram = (self.centred.T @ self.centred).astype(np.float64)
        self.used = np.diag(gram) > 0
        inverse = inverse_of(gram)
        self.solver = self.centred @ inverse.astype(np.float32)  # (n, r): D = solver^T X
        self.variance = np.diag(gram) / len(codes)
        self.error = np.diag(inverse)  # variance of a decoder, per variance of the residual
        names, index = np.unique(block, return_inverse=True)
        ones = np.ones(len(codes), dtype=np.float32)
        shape = (len(names), len(codes))
        self.blocks = scipy.sparse.csr_matrix((ones, (index, np.arange(len(codes)))), shape)

    def grams(self, X: np.ndarray) -> list[np.ndarray]:
        """Return the moments (m, m) of either half of the texts; the same for any codes."""
        return [X[half].T @ X[half] for half in (self.half, ~self.half)]

    def decode(self, X: np.ndarray) -> np.ndarray:
        """Return the decoders (r, m) of a standardised checkpoint `X` (n, m)."""
        return np.asarray(self.solver.T @ X)

    def strength(self, X: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return strength (r,), its floor (r,) and the share of the variance left over."""
        n, free = len(X), max(len(X) - 1 - int(self.used.sum()), 1)
        total = float(np.einsum("nm,nm->", X, X, dtype=np.float64)) / n
        if total == 0:
            return np.zeros(len(D)), np.zeros(len(D)), 1.0
        length = np.einsum("rm,rm->r", D, D, dtype=np.float64)
        fitted = float((self.centred @ D * X).sum(dtype=np.float64)) / n
        left = max(1 - fitted / total, 0.0) * n / free
        floor = left * self.variance * self.error
        return np.sqrt(np.maximum(length * self.variance / total - floor, 0)), np.sqrt(floor), left

    def __call__(self, X: np.ndarray) -> Presence:
        """Return all that is said of one standardised checkpoint `X` (n, m)."""
        grams = self.grams(X)
        return self.presence(X, grams, self.readable(X, grams))

    def presence(
        self, X: np.ndarray, grams: Sequence[np.ndarray], readable: np.ndarray
    ) -> Presence:
        """Return the same from the results of `grams` and `readable`."""
        D = self.decode(X)
        strength, floor, left = self.strength(X, D)
        covariance = ((grams[0] + grams[1]) / len(X)).astype(np.float64)
        size = float(np.trace(covariance))
        effective = size**2 / max(float((covariance**2).sum()), 1e-300)
        return Presence(
            D[None],
            strength[None],
            floor[None],
            readable.mean(axis=0)[None],
            np.array([min(1 - left, 1.0)]),
            _whitened(D, covariance)[None],
            self._influence(X, D, size)[None],
            (floor**2 * np.sqrt(2 / max(effective, 1.0)))[None],
        )

    def _influence(self, X: np.ndarray, D: np.ndarray, size: float) -> np.ndarray:
        """Return by how much every block of texts moves the squared strength, (blocks, r).

        The derivative of ``|d|^2 mean(u^2) / var`` by the weight of a token, summed over tokens.
        """
        n, variance = len(X), self.variance.astype(np.float32)
        if size == 0:
            return np.zeros((self.blocks.shape[0], len(D)), dtype=np.float32)
        residual = X - self.centred @ D
        length = np.einsum("rm,rm->r", D, D)
        of_token = 2 * variance * self.solver * (residual @ D.T)
        of_token += length * (self.centred**2 - variance) / n
        of_token -= length * variance * ((X**2).sum(axis=1, keepdims=True) / size - 1) / n
        return np.asarray(self.blocks @ of_token / size, dtype=np.float32)

    def readable(self, X: np.ndarray, grams: Sequence[np.ndarray]) -> np.ndarray:
        """Return the correlation of each code with its readout on either half of the texts, (2, r).

        The readout is fitted on the other half.
        """
        predicted = self.readout(X, grams)
        halves = (~self.half, self.half)
        return np.stack([_correlation(predicted[half], self.codes[half]) for half in halves])

    def readout(self, X: np.ndarray, grams: Sequence[np.ndarray]) -> np.ndarray:
        """Return what a sparse linear readout of `X` (n, m) says of the codes, (n, r).

        That of either half of the texts is fitted on the other half.
        """
        found = np.empty_like(self.codes)
        for half, gram in zip((self.half, ~self.half), grams, strict=True):
            mean, aim = X[half].mean(axis=0), self.codes[half]
            moment = gram - half.sum() * np.outer(mean, mean)
            moment.flat[:: len(moment) + 1] += RIDGE * max(np.trace(moment), 1e-30) / len(moment)
            product = X[half].T @ (aim - aim.mean(axis=0))
            weights = scipy.linalg.solve(moment, product, assume_a="pos", overwrite_a=True)
            found[~half] = sparse_readout(X[~half] @ weights, (aim > 0).mean(axis=0))
        return found


def inverse_of(gram: np.ndarray) -> np.ndarray:
    """Return the pseudoinverse (r, r) of the inner products of codes, 0 for codes that are 0."""
    inverse = np.zeros_like(gram)
    used = np.diag(gram) > 0
    chosen = np.ix_(used, used)
    inverse[chosen] = np.linalg.pinv(gram[chosen], rcond=1e-8, hermitian=True)
    return inverse


def sparse_readout(predicted: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the largest values of each column of `predicted` (n, r), a `share` (r,) of them.

    A code is mostly zero, and so is its readout: what a linear map says of tokens far below its
    largest values is interference of other concepts.
    """
    n, r = predicted.shape
    kept = np.clip(np.ceil(share * n).astype(int), 1, n - 1)
    limit = np.sort(predicted, axis=0)[n - 1 - kept, np.arange(r)]
    return np.where(predicted > limit, predicted, 0)


def _correlation(P: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the correlations (r,) of columns; 0 where one is constant."""
    P, Q = P - P.mean(axis=0), Q - Q.mean(axis=0)
    length = np.sqrt((P**2).sum(axis=0, dtype=np.float64) * (Q**2).sum(axis=0, dtype=np.float64))
    product = (P * Q).sum(axis=0, dtype=np.float64)
    return np.where(length > 0, product / np.where(length > 0, length, 1.0), 0.0)


def _whitened(D: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return ``D C^-1 D^T`` (r, r), with a little added to the covariance C."""
    C = covariance.copy()
    C.flat[:: len(C) + 1] += WHITENING * max(float(np.trace(C)), 1e-30) / len(C)
    factor = scipy.linalg.cholesky(C, lower=True)
    half = scipy.linalg.solve_triangular(factor, D.T.astype(np.float64), lower=True)
    return np.asarray(half.T @ half, dtype=np.float32)
