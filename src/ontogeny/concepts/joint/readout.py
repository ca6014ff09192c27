"""What one checkpoint gives for codes that all checkpoints share, each part computed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from .presence import Decoder, Presence

RIDGE = 1e-2  # of the readout, against the mean variance of a feature
WHITENING = 1e-3  # added to the covariance, against the mean variance of a feature


class Moments:
    """A standardised checkpoint, and what is the same of it for any codes.

    Parameters
    ----------
    X
        (n, m) activations, centred and standardised.
    half
        (n,) True for the tokens of one half of the texts.

    Attributes
    ----------
    covariance
        (m, m) float64.
    """

    def __init__(self, X: np.ndarray, half: np.ndarray) -> None:
        self.X = X
        self.halves = (half, ~half)
        moments = [X[rows].T @ X[rows] for rows in self.halves]
        self.covariance = ((moments[0] + moments[1]) / len(X)).astype(np.float64)
        self._factors = [
            _factor(moment, X[rows])
            for rows, moment in zip(self.halves, moments, strict=True)
        ]

    def predicted(self, codes: np.ndarray) -> np.ndarray:
        """Return what a sparse linear readout of the checkpoint says of codes (n, r), (n, r).

        That of either half of the texts is fitted on the other half.
        """
        predicted = np.empty_like(codes)
        for half, (weights, share) in zip(
            self.halves, self._readouts(codes), strict=True
        ):
            values = self.X[~half] @ weights
            predicted[~half] = _above(values, _limits(values, share))
        return predicted

    def predicted_of(
        self, others: np.ndarray, first: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Return what the same readouts say of other tokens of the checkpoint, (e, r).

        Parameters
        ----------
        others
            (e, m) activations, standardised like the checkpoint.
        first
            (e,) True for tokens of the first half of the texts.
        codes
            (n, r) codes that the readouts are fitted to.
        """
        predicted = np.empty((len(others), codes.shape[1]), dtype=codes.dtype)
        # Readouts fitted on the first half serve tokens of the second, and the other way round.
        for half, rows, (weights, share) in zip(
            self.halves, (~first, first), self._readouts(codes), strict=True
        ):
            limit = _limits(self.X[~half] @ weights, share)
            predicted[rows] = _above(others[rows] @ weights, limit)
        return predicted

    def _readouts(self, codes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give weights (m, r) fitted on either half, and on which share (r,) of it codes fire."""
        for half, factor in zip(self.halves, self._factors, strict=True):
            aim = codes[half]
            weights = scipy.linalg.cho_solve(
                factor, self.X[half].T @ (aim - aim.mean(axis=0))
            )
            yield weights, (aim > 0).mean(axis=0)

    def readable(
        self, codes: np.ndarray, predicted: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the correlation of each code with its readout on either half of the texts, (2, r).

        The readout is fitted on the other half; `predicted` is what it says, if that is known.
        """
        values = self.predicted(codes) if predicted is None else predicted
        return np.stack(
            [_correlation(values[i], codes[i]) for i in reversed(self.halves)]
        )


@dataclass(eq=False)
class CheckpointReadout:
    """What one checkpoint says of the latents of a decoder: computed once, used by all who ask.

    Parameters
    ----------
    moments
        The checkpoint.
    decoder
        The codes.
    """

    moments: Moments
    decoder: Decoder

    @cached_property
    def decoders(self) -> np.ndarray:
        """(r, m) what one unit of each code writes, in standard deviations of the checkpoint."""
        return self.decoder.decode(self.moments.X)

    @cached_property
    def predicted(self) -> np.ndarray:
        """(n, r) what a sparse linear readout of this checkpoint alone says of the codes."""
        return self.moments.predicted(self.decoder.codes)

    @cached_property
    def readable(self) -> np.ndarray:
        """(2, r) correlation of each code with its readout, on either half of the texts."""
        return self.moments.readable(self.decoder.codes, self.predicted)

    @cached_property
    def presence(self) -> Presence:
        """All that is said of the checkpoint."""
        X = self.moments.X
        D = self.decoders
        covariance = self.moments.covariance
        strength, floor, share = self.decoder.strength(X, D)
        size = float(np.trace(covariance))
        # How many features vary independently: noise of a squared length averages over so many.
        effective = size**2 / max(float((covariance**2).sum()), 1e-300)
        return Presence(
            D[None],
            strength[None],
            floor[None],
            self.readable.mean(axis=0)[None],
            np.array([min(1 - share, 1.0)]),
            _whitened(D, covariance)[None],
            self.decoder.influence(X, D, size)[None],
            (floor**2 * np.sqrt(2 / max(effective, 1.0)))[None],
        )


def _factor(moment: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the Cholesky factor of the centred moment (m, m) of rows X, with a little added."""
    mean = X.mean(axis=0)
    moment = moment.astype(np.float64) - len(X) * np.outer(mean, mean).astype(
        np.float64
    )
    moment.flat[:: len(moment) + 1] += (
        RIDGE * max(np.trace(moment), 1e-30) / len(moment)
    )
    return scipy.linalg.cho_factor(moment, overwrite_a=True)


def _limits(predicted: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return above which number (r,) a `share` (r,) of each column of `predicted` (n, r) lies."""
    n, r = predicted.shape
    count = np.clip(np.ceil(share * n).astype(int), 1, n - 1)
    # The largest value that is not kept, as `_above` compares by ">": ties fall below.
    return np.asarray(np.sort(predicted, axis=0)[n - 1 - count, np.arange(r)])


def _above(predicted: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return the values above the limit of their column, else 0.

    A code is mostly zero, and so is its readout: what a linear map says of tokens far below its
    largest values is interference of other concepts.
    """
    return np.where(predicted > limit, predicted, 0)


def _correlation(P: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the correlations (r,) of columns; 0 where one is constant."""
    P = P - P.mean(axis=0)
    Q = Q - Q.mean(axis=0)
    length = np.sqrt(
        (P**2).sum(axis=0, dtype=np.float64) * (Q**2).sum(axis=0, dtype=np.float64)
    )
    product = (P * Q).sum(axis=0, dtype=np.float64)
    return np.where(length > 0, product / np.where(length > 0, length, 1.0), 0.0)


def _whitened(D: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return ``D C^-1 D^T`` (r, r), with a little added to the covariance C."""
    C = covariance.copy()
    C.flat[:: len(C) + 1] += WHITENING * max(float(np.trace(C)), 1e-30) / len(C)
    factor = scipy.linalg.cholesky(C, lower=True)
    half = scipy.linalg.solve_triangular(factor, D.T.astype(np.float64), lower=True)
    return np.asarray(half.T @ half, dtype=np.float32)
