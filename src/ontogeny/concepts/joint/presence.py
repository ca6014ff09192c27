"""What shared codes say of one checkpoint: decoders, how strong and how readable each concept is.

The codes U (n, r) are the same at every checkpoint, so a checkpoint is one least-squares fit:
nothing is trained, and a checkpoint that the codes were not fitted on is treated like the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from .lives import Lives, first_half, was_low


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
        return cls(
            *(
                np.concatenate([getattr(p, f) for p in parts])
                for f in cls.__annotations__
            )
        )

    def at(self, index: int) -> Presence:
        """Return one of the checkpoints, by its index; -1 is the last."""
        parts = (getattr(self, f) for f in type(self).__annotations__)
        return type(self)(*(part[index : index + 1 or None] for part in parts))


class Decoder:
    """Least squares on codes (n, r) that stay the same, prepared once for all checkpoints.

    Parameters
    ----------
    codes
        (n, r) sparse codes.
    block
        (n,) block of texts that each token belongs to.
    """

    def __init__(self, codes: np.ndarray, block: np.ndarray) -> None:
        self.codes = codes
        self.centred = codes - codes.mean(axis=0)
        gram = (self.centred.T @ self.centred).astype(np.float64)
        self.used = np.diag(gram) > 0
        inverse = inverse_of(gram)
        # (n, r): D = solver^T X.
        self.solver = self.centred @ inverse.astype(np.float32)
        self.variance = np.diag(gram) / len(codes)
        # Variance of a decoder, per variance of the residual.
        self.error = np.diag(inverse)
        names, index = np.unique(block, return_inverse=True)
        ones = np.ones(len(codes), dtype=np.float32)
        shape = (len(names), len(codes))
        self.blocks = scipy.sparse.csr_matrix(
            (ones, (index, np.arange(len(codes)))), shape
        )

    def decode(self, X: np.ndarray) -> np.ndarray:
        """Return the decoders (r, m) of a standardised checkpoint `X` (n, m)."""
        return np.asarray(self.solver.T @ X)

    def strength(
        self, X: np.ndarray, D: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return strength (r,), its floor (r,) and the share of the variance left over."""
        n = len(X)
        free = max(len(X) - 1 - int(self.used.sum()), 1)
        total = float(np.einsum("nm,nm->", X, X, dtype=np.float64)) / n
        if total == 0:
            return np.zeros(len(D)), np.zeros(len(D)), 1.0
        length = np.einsum("rm,rm->r", D, D, dtype=np.float64)
        fitted = float((self.centred @ D * X).sum(dtype=np.float64)) / n
        share = max(1 - fitted / total, 0.0) * n / free
        # The squared strength that a decoder fitted to noise alone has on average; it is taken off.
        # A pseudoinverse may round below.
        floor = np.maximum(share * self.variance * self.error, 0)
        return (
            np.sqrt(np.maximum(length * self.variance / total - floor, 0)),
            np.sqrt(floor),
            share,
        )

    def influence(self, X: np.ndarray, D: np.ndarray, size: float) -> np.ndarray:
        """Return by how much every block of texts moves the squared strength, (blocks, r).

        The derivative of ``|d|^2 mean(u^2) / var`` by the weight of a token, summed over tokens;
        `size` is the variance of the checkpoint.
        """
        n = len(X)
        variance = self.variance.astype(np.float32)
        if size == 0:
            return np.zeros((self.blocks.shape[0], len(D)), dtype=np.float32)
        residual = X - self.centred @ D
        length = np.einsum("rm,rm->r", D, D)
        # By the weight of a token its decoder moves, then the variance of the codes, then the
        # variance of the checkpoint that both are divided by.
        of_token = 2 * variance * self.solver * (residual @ D.T)
        of_token += length * (self.centred**2 - variance) / n
        of_token -= (
            length * variance * ((X**2).sum(axis=1, keepdims=True) / size - 1) / n
        )
        return np.asarray(self.blocks @ of_token / size, dtype=np.float32)


class PartialDecoder:
    """The strengths of codes by some of the tokens alone.

    Parameters
    ----------
    codes
        (n, r) sparse codes.
    rows
        (n,) True for the tokens that are used.
    """

    def __init__(self, codes: np.ndarray, rows: np.ndarray) -> None:
        self._rows = rows
        sample = codes[rows]
        self._decoder = Decoder(sample, np.zeros(len(sample)))

    def strength(self, X: np.ndarray) -> np.ndarray:
        """Return the strengths (r,) at a standardised checkpoint `X` (n, m)."""
        part = X[self._rows]
        part = part - part.mean(axis=0)
        return self._decoder.strength(part, self._decoder.decode(part))[0]


def inverse_of(gram: np.ndarray) -> np.ndarray:
    """Return the pseudoinverse (r, r) of the inner products of codes, 0 for codes that are 0."""
    inverse = np.zeros_like(gram)
    used = np.diag(gram) > 0
    block = np.ix_(used, used)
    inverse[block] = np.linalg.pinv(gram[block], rcond=1e-8, hermitian=True)
    return inverse


LEVEL = 0.05
FOUND_AGAIN = 0.7  # correlation of codes above which two latents are the same


@dataclass(frozen=True, eq=False)
class BirthIntervals:
    """Between which checkpoints each concept was born; indexes, -1 where it was not born.

    Attributes
    ----------
    after
        (r,) last checkpoint that is certainly before the birth.
    before
        (r,) first checkpoint that is certainly not.
    agreement
        (r,) share of the resamples of texts in which the latent has a birth.
    """

    after: np.ndarray
    before: np.ndarray
    agreement: np.ndarray


def birth_intervals(
    presence: Presence, life: Lives, n_draws: int, rng: np.random.Generator
) -> BirthIntervals:
    """Return intervals that hold the birth in 95 % of the resamples of texts.

    Squared strengths are resampled by their derivatives by the weights of texts, and by the noise
    of the decoders. A birth is known between two checkpoints at best.
    """
    blocks = presence.influence.shape[1]
    squared = presence.strength**2
    starts = np.full((n_draws, squared.shape[1]), -1)
    for k in range(n_draws):
        # By how much the weight of each block differs from the 1 that it has in the data.
        times = rng.multinomial(blocks, np.full(blocks, 1 / blocks)) - 1.0
        moved = np.einsum("b,sbr->sr", times.astype(np.float32), presence.influence)
        noise = presence.spread * rng.standard_normal(squared.shape)
        curve = np.sqrt(np.maximum(squared + moved + noise, 0)) * life.own_share
        start = first_half(curve)
        starts[k] = np.where(was_low(curve, start), start, -1)
    seen = starts >= 0
    born = life.born >= 0
    low = _quantile(starts, seen, LEVEL / 2, np.floor)
    high = _quantile(starts, seen, 1 - LEVEL / 2, np.ceil)
    return BirthIntervals(
        after=np.where(born, np.minimum(low, life.start) - 1, -1),
        before=np.where(born, np.maximum(high, life.start), -1),
        agreement=seen.mean(axis=0) if n_draws else np.full(squared.shape[1], np.nan),
    )


def _quantile(
    values: np.ndarray, seen: np.ndarray, level: float, to: np.ufunc
) -> np.ndarray:
    """Return a quantile (r,) of the values (draws, r) that are seen; -1 of none."""
    # Draws without a birth are sorted behind all others, where no `place` reaches.
    ordered = np.sort(np.where(seen, values, np.iinfo(int).max), axis=0)
    count = seen.sum(axis=0)
    place = to(level * np.maximum(count - 1, 0)).astype(int)
    if not len(values):
        return np.full(values.shape[1], -1)
    return np.where(count > 0, np.take_along_axis(ordered, place[None], axis=0)[0], -1)


def found_again(codes: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the best correlation (r,) of each code with those of another fit, and which it is."""
    first, second = (U - U.mean(axis=0) for U in (codes, other))
    lengths = [np.maximum(np.linalg.norm(U, axis=0), 1e-30) for U in (first, second)]
    correlation = (first / lengths[0]).T @ (second / lengths[1])
    return correlation.max(axis=1).astype(np.float64), correlation.argmax(axis=1)


def widened(
    births: BirthIntervals, born: np.ndarray, strength: np.ndarray, again: np.ndarray
) -> BirthIntervals:
    """Return the intervals widened to the births that another fit gives.

    Parameters
    ----------
    born
        (r,) births of this fit.
    strength
        (S, r) strengths of the matching latents of the other fit.
    again
        (r,) correlations with them.
    """
    start = first_half(strength)
    other = (born >= 0) & (again >= FOUND_AGAIN) & was_low(strength, start)
    return BirthIntervals(
        after=np.where(other, np.minimum(births.after, start - 1), births.after),
        before=np.where(other, np.maximum(births.before, start), births.before),
        agreement=births.agreement,
    )
