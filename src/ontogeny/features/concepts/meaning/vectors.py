"""Vectors of words from the words beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import svds

N_DIRECTIONS = 60
FEWEST = 2  # occurrences of a word that gets a vector of its own
# Where ARPACK reaches the rank, it goes on from a random vector: the last bits of two runs over 59
# words differed, of which many stood in the same contexts.
_DENSE = 1000  # words


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Unit vectors (k, d) of words (k,), NaN of words that the texts hardly hold; their counts."""

    vectors: np.ndarray
    counts: np.ndarray


def word_vectors(
    texts: Iterable[Sequence[str]],
    words: Sequence[str],
    n_directions: int = N_DIRECTIONS,
) -> WordVectors:
    """Return vectors of `words` by the words that stand next to them in `texts`.

    The positive pointwise mutual information of a word with the next and with the previous one,
    reduced to its leading singular directions, each weighted with the root of its singular value
    (Levy, Goldberg and Dagan, TACL 3, 2015).

    Parameters
    ----------
    texts
        Lists of words; nothing is counted across two of them.
    words
        The words that are asked for.
    n_directions
        Singular directions at most.

    Examples
    --------
    >>> texts = [f"the {noun} {verb} now".split() for noun in "ab" for verb in "xyz"]
    >>> near = word_vectors(texts, ["a", "b", "now", "none"], 2)
    >>> (near.vectors @ near.vectors.T).round(2).tolist()[0][1]
    1.0
    """
    return _vectors(tuple(map(tuple, texts)), tuple(words), n_directions)


# Both halves of two samples: a run and its controls ask for the same.
@lru_cache(maxsize=4)
def _vectors(
    streams: tuple[tuple[str, ...], ...], words: tuple[str, ...], n_directions: int
) -> WordVectors:
    words_of_all = np.array([*chain.from_iterable(streams)] or [""], dtype=object)
    flat, types = pd.factorize(words_of_all, sort=True)
    counts = np.bincount(flat, minlength=len(types))
    index = dict(zip(types.tolist(), range(len(types)), strict=True))
    place = np.array([index.get(word, -1) for word in words], dtype=int)
    there = (place >= 0) & (counts[place] >= FEWEST)
    vectors = np.full((len(place), n_directions), np.nan, dtype=np.float32)
    last = np.cumsum([len(text) for text in streams]) - 1
    pairs = np.setdiff1d(np.arange(len(flat) - 1), last)
    if there.any() and len(pairs):
        information = _ppmi(flat[pairs], flat[pairs + 1], len(types))
        # Words that were not asked for are contexts only: the directions are for the others.
        vectors[there] = _reduced(information[place[there]], n_directions)
    return WordVectors(vectors, np.where(place >= 0, counts[place], 0))


def _ppmi(before: np.ndarray, after: np.ndarray, size: int) -> sparse.csr_array:
    """Return the information (size, 2 size) of words with the next and with the previous one."""
    row = np.concatenate([before, after])
    column = np.concatenate([after, before + size])
    counts = sparse.csr_array(
        (np.ones(len(row)), (row, column)), (size, 2 * size)
    ).tocoo()
    total = counts.data.sum()
    expected = counts.sum(axis=1)[counts.row] * counts.sum(axis=0)[counts.col] / total
    values = np.maximum(np.log(counts.data / expected), 0.0)
    return sparse.csr_array((values, (counts.row, counts.col)), counts.shape)


def _reduced(matrix: sparse.csr_array, n_directions: int) -> np.ndarray:
    """Return unit rows (size, n_directions) in the leading singular directions."""
    k = min(n_directions, min(matrix.shape) - 1)
    if k < 1:
        return np.zeros((matrix.shape[0], n_directions))
    if matrix.shape[0] <= _DENSE:
        squares, left = np.linalg.eigh((matrix @ matrix.T).toarray())
        squares[squares < len(squares) * np.finfo(float).eps * squares[-1]] = 0.0
        left = left[:, -k:]
        size = np.sqrt(squares[-k:])
    else:  # a start of its own, so that two runs give the same
        left, size, _ = svds(matrix, k, v0=np.ones(min(matrix.shape)))
    vectors = left * np.sqrt(np.maximum(size, 0.0))
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.pad(
        vectors / np.where(length > 0, length, 1.0), ((0, 0), (0, n_directions - k))
    )
