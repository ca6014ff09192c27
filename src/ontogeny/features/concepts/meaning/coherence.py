"""How much the words of a concept are alike, beside other words that are as frequent."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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
    """How alike the words of each of r concepts are, by both halves of the texts.

    ``of_half`` (2, r) are the weighted mean cosines of the words that one half gives, by the
    vectors of the other, in standard deviations of words that are as frequent; ``z`` (r,) is their
    mean. ``p`` (r,) says how often such words are as much alike in both together. 0 and 1 where
    fewer than two words have a vector. ``chosen`` are share and nearness to the mean of the class
    by word, for each half and concept.
    """

    of_half: np.ndarray
    p: np.ndarray
    chosen: tuple[tuple[dict[int, tuple[float, float]], ...], ...]

    @property
    def z(self) -> np.ndarray:
        """The mean of both halves, (r,)."""
        return np.asarray(self.of_half.mean(axis=0))


def coherence(
    carried: Sequence[np.ndarray],
    vectors: Sequence[WordVectors],
    random_state: int,
    n_draws: int,
) -> Coherence:
    """Return how alike the words are that carry most of a concept's squared code (words, r).

    Parameters
    ----------
    carried
        The squared codes of each half of the texts on each word.
    vectors
        Vectors of the words, for each half from other texts than it.
    random_state, n_draws
        Of the null: each word is replaced by one of the 40 that are nearest in frequency, of those
        that some row is of (as frequent, and of the same texts); a word of both halves by the same.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near = np.repeat(np.eye(2), 50, axis=0) + rng.normal(size=(100, 2)) / 9
    >>> near /= np.linalg.norm(near, axis=1, keepdims=True)
    >>> carried = np.zeros((100, 2))
    >>> carried[:8, 0], carried[46:54, 1] = 1, 1  # a class, and half of each
    >>> vectors = WordVectors(near, rng.permutation(100))
    >>> result = coherence([carried] * 2, [vectors] * 2, 0, 200)
    >>> result.z.round(0).tolist(), (result.p < 0.05).tolist()
    ([5.0, -1.0], [True, False])
    """
    has_vectors = np.all(
        [np.isfinite(corpus.vectors).all(axis=1) for corpus in vectors], axis=0
    )
    pool = np.flatnonzero(has_vectors)
    counts = np.sum([corpus.counts for corpus in vectors], axis=0)
    pool = pool[np.argsort(counts[pool], kind="stable")]
    units = [corpus.vectors[pool] for corpus in vectors]
    shares = [
        one[pool] / np.maximum(one.sum(axis=0), np.finfo(float).tiny) for one in carried
    ]
    tops = [np.argsort(-share, axis=0, kind="stable")[:N_WORDS].T for share in shares]
    rng = np.random.default_rng([random_state, 5])
    r = shares[0].shape[1]
    z = np.zeros((len(units), r))
    p = np.ones(r)
    typical = []
    for j in range(r):
        words = [
            top[j][share[top[j], j] > 0]
            for top, share in zip(tops, shares, strict=True)
        ]
        portions = [share[top, j] for top, share in zip(words, shares, strict=True)]
        if min(map(len, words)) > 1:
            z[:, j], p[j] = _judged(words, portions, units, rng, n_draws)
        halves = zip(words, portions, units, strict=True)
        typical.append(tuple(_typical(pool, *half) for half in halves))
    return Coherence(z, p, tuple(typical))


def _judged(
    words: Sequence[np.ndarray],
    shares: Sequence[np.ndarray],
    units: Sequence[np.ndarray],
    rng: np.random.Generator,
    n_draws: int,
) -> tuple[np.ndarray, float]:
    """Return z of each half and p of one concept, from the places of its words in the pool."""
    union, place = np.unique(np.concatenate(words), return_inverse=True)
    places = np.split(place, np.cumsum([len(one) for one in words])[:-1])
    weights = [_levelled(share) for share in shares]
    width = min(2 * NEAREST + 1, len(units[0]))
    low = np.clip(union - NEAREST, 0, len(units[0]) - width)
    candidates = low[:, None] + np.arange(width)
    tables = [
        _pairs(unit[candidates[at]], w)
        for unit, at, w in zip(units, places, weights, strict=True)
    ]
    null = []
    for start in range(0, n_draws, BLOCK):
        sample = rng.integers(width, size=(min(BLOCK, n_draws - start), len(union)))
        null.append(
            [
                _looked_up(table, sample[:, at])
                for table, at in zip(tables, places, strict=True)
            ]
        )
    draws = np.concatenate(null, axis=1)
    place_of = (union - low)[None, :]
    values = np.array(
        [
            _looked_up(table, place_of[:, at])[0]
            for table, at in zip(tables, places, strict=True)
        ]
    )
    mean = draws.mean(axis=1)
    spread = np.maximum(draws.std(axis=1), 1e-9)
    z = (values - mean) / spread
    drawn_z = (draws - mean[:, None]) / spread[:, None]
    # Rounding must not part equal sums.
    return z, (1 + (drawn_z.sum(axis=0) >= z.sum() - 1e-9).sum()) / (1 + n_draws)


def _levelled(share: np.ndarray) -> np.ndarray:
    """Return shares, largest first, of which the first three count as much as the third."""
    return np.minimum(share, share[min(LEVELLED, len(share)) - 1])


def _pairs(unit: np.ndarray, weight: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Return i, j and the weighted cosines of the candidates (k, width, d) of every two words.

    Draws choose among the same few candidates, so that looking cosines up is some ten times faster
    than adding vectors up in every draw.
    """
    exact = unit.astype(np.float64)
    portions = np.triu(np.outer(weight, weight), 1)
    portions /= portions.sum()
    pairs = itertools.combinations(range(len(weight)), 2)
    return [(i, j, portions[i, j] * (exact[i] @ exact[j].T)) for i, j in pairs]


def _looked_up(
    pairs: list[tuple[int, int, np.ndarray]], sample: np.ndarray
) -> np.ndarray:
    """Return the weighted mean cosine of the pairs of the candidates (draws, k) that are drawn."""
    # One index into a table laid flat is three times as fast as two.
    columns = np.ascontiguousarray(sample.T)
    total = np.zeros(len(sample))
    for i, j, cosine in pairs:
        total += cosine.ravel().take(columns[i] * len(cosine) + columns[j])
    return total


def _typical(
    pool: np.ndarray, words: np.ndarray, share: np.ndarray, unit: np.ndarray
) -> dict[int, tuple[float, float]]:
    """Return levelled share and cosine with the weighted mean of each word of a concept."""
    if not len(words):
        return {}
    centre = _levelled(share) @ unit[words]
    near = unit[words] @ centre / max(float(np.linalg.norm(centre)), 1e-9)
    pairs = zip(share.tolist(), near.tolist(), strict=True)
    return dict(zip(pool[words].tolist(), pairs, strict=True))
