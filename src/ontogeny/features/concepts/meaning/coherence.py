"""How much the words of a concept are alike, beside other words that are as frequent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .vectors import WordVectors

N_WORDS = 8  # words of a concept that are judged
LEVELLED = 3  # the first words count as much as this one: they do not decide alone
NEAREST = 20  # words on either side in the order of counts that a word is drawn from
N_DRAWS = 200  # for the mean and the deviation of the null
BLOCK = 2000  # draws at once


@dataclass(frozen=True, eq=False)
class Coherence:
    """How alike the words of each of r concepts are.

    ``z`` (r,) is the weighted mean cosine of the words in standard deviations of words that are
    as frequent, ``p`` (r,) how often those are as much alike; NaN where fewer than two words have
    a vector. ``words`` (r, 8) are the words, most of the code first, -1 where there are fewer,
    ``weights`` their shares of the code, ``nearness`` their cosines with the weighted mean.
    """

    z: np.ndarray
    p: np.ndarray
    words: np.ndarray
    weights: np.ndarray
    nearness: np.ndarray

    def of(self, concept: int) -> dict[int, tuple[float, float]]:
        """Return share and nearness of each word of a concept."""
        parts = (self.words, self.weights, self.nearness)
        words, shares, near = (part[concept].tolist() for part in parts)
        return {w: (s, n) for w, s, n in zip(words, shares, near, strict=True) if w >= 0}


def coherence(
    carried: np.ndarray, vectors: WordVectors, random_state: int, n_draws: int = N_DRAWS
) -> Coherence:
    """Return how alike the words are that carry most of a concept's squared code (words, r).

    The first three words get the weight of the third. A word of the null is drawn from the 40 that
    are nearest in frequency, of those that some row is of: as frequent, and of the same texts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near = np.repeat(np.eye(2), 50, axis=0) + rng.normal(size=(100, 2)) / 9
    >>> near /= np.linalg.norm(near, axis=1, keepdims=True)
    >>> carried = np.zeros((100, 2))
    >>> carried[:8, 0], carried[46:54, 1] = 1, 1  # a class, and half of each
    >>> found = coherence(carried, WordVectors(near, rng.permutation(100)), 0)
    >>> found.z.round(0).tolist(), (found.p < 0.05).tolist()
    ([5.0, -1.0], [True, False])
    """
    known = np.isfinite(vectors.vectors).all(axis=1)
    pool = np.flatnonzero(known)
    pool = pool[np.argsort(vectors.counts[pool], kind="stable")]
    unit = vectors.vectors[pool]
    total = carried.sum(axis=0)
    amount = carried[pool] / np.where(total > 0, total, 1.0)
    top = np.argsort(-amount, axis=0, kind="stable")[:N_WORDS].T
    share = np.take_along_axis(amount.T, top, axis=1)
    rng = np.random.default_rng([random_state, 5])
    level = np.minimum(share, share[:, [min(LEVELLED, top.shape[1]) - 1]]) if len(pool) else share
    centre = np.einsum("rkd,rk->rd", unit[top], level)
    length = np.linalg.norm(centre, axis=1, keepdims=True)
    near = np.einsum("rkd,rd->rk", unit[top], centre / np.where(length > 0, length, 1.0))
    z, p = np.full(len(top), np.nan), np.full(len(top), np.nan)
    for j in range(len(top)):
        if np.count_nonzero(share[j]) > 1:
            z[j], p[j] = _judged(top[j], share[j], unit, rng, n_draws)
    missing = ((0, 0), (0, N_WORDS - top.shape[1]))
    words = np.pad(np.where(share > 0, pool[top], -1), missing, constant_values=-1)
    return Coherence(z, p, words, np.pad(share, missing), np.pad(near, missing))


def _judged(
    top: np.ndarray, share: np.ndarray, unit: np.ndarray, rng: np.random.Generator, n_draws: int
) -> tuple[float, float]:
    """Return z and p of one concept, from the places of its words among the unit vectors."""
    top, share = top[share > 0], share[share > 0]
    weight = np.minimum(share, share[min(LEVELLED, len(share)) - 1])
    value = _mean_cosine(unit[top], weight)
    low = np.clip(top - NEAREST, 0, max(len(unit) - 2 * NEAREST - 1, 0))
    width = min(2 * NEAREST + 1, len(unit))
    null = []
    for start in range(0, n_draws, BLOCK):
        drawn = low + rng.integers(width, size=(min(BLOCK, n_draws - start), len(top)))
        null.append(_mean_cosine(unit[drawn], weight))
    draws = np.concatenate(null)
    spread = max(draws.std(), 1e-9)
    return (value - draws.mean()) / spread, (1 + (draws >= value).sum()) / (1 + n_draws)


def _mean_cosine(unit: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted mean cosine of the pairs of unit vectors (..., words, d)."""
    summed = np.einsum("...kd,k->...d", unit, weight)
    pairs = (summed**2).sum(axis=-1) - (weight**2).sum()
    return np.asarray(pairs / (weight.sum() ** 2 - (weight**2).sum()))
