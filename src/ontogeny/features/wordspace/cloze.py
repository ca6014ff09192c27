"""The support matrix of masked language models: which words stand between which neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ...errors import ArgumentError, check_whole
from .corpus import Tokens, token_stream
from .counting import relabelled
from .support import ContextWords, Support, checked_lengths, vocabulary


@dataclass(frozen=True, eq=False)
class Cloze:
    """A support matrix whose contexts have a gap.

    Parameters
    ----------
    support
        As of `support_matrix`; a context is its neighbours from left to right.
    left
        How many of a context's words stand before the gap (m,).
    """

    support: Support
    left: np.ndarray


def cloze_support(
    tokens: Tokens,
    vocab_size: int = 1000,
    n_contexts: int = 10_000,
    lengths: tuple[int, int] = (2, 4),
    *,
    exclude: Iterable[str | int] = ("<unk>",),
    names: Sequence[str] | None = None,
) -> Cloze:
    """Count which words stand in the gaps of the most frequent two-sided contexts of a text.

    A context of n words is the ceil(n/2) words before a word and the floor(n/2) after it, all
    among the `vocab_size` most frequent ones and in one text; the `n_contexts` most frequent over
    all lengths are taken. A masked model predicts this word, not the next one.

    Parameters
    ----------
    tokens, vocab_size, n_contexts, exclude, names
        As in `support_matrix`.
    lengths
        Fewest and most neighbours, both sides together, at least 2.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or no gap has neighbours.

    Notes
    -----
    The next-word theory of Zhao and Thrampoulidis 2025 with "what follows a context" read as
    "what fills a gap"; the paper treats next-word prediction only.

    Examples
    --------
    >>> cloze = cloze_support("the cat sat . the dog sat . the cat ran .", lengths=(2, 2))
    >>> j = list(cloze.support.contexts).index(("the", "sat"))
    >>> [cloze.support.words[z] for z in cloze.support.S[:, [j]].nonzero()[0]], int(cloze.left[j])
    (['cat', 'dog'], 1)
    """
    shortest, longest = checked_lengths(lengths)
    if shortest < 2:
        raise ArgumentError(f"lengths must be at least 2, one word on each side; got {lengths!r}.")
    check_whole("n_contexts", n_contexts)
    stream = token_stream(tokens, names)
    word_ids = vocabulary(stream, exclude, vocab_size)
    ids, V = relabelled(stream.ids, word_ids), len(word_ids)
    found = [_windows(ids, V, n) for n in range(shortest, longest + 1)]
    counts = np.concatenate([f.counts for f in found])
    if not len(counts):
        raise ArgumentError(
            f"tokens hold no word between {shortest} to {longest} neighbours "
            f"({len(stream)} tokens, {V} different words kept)."
        )
    first = np.concatenate([f.first for f in found])
    kept = np.lexsort((first, -counts))[:n_contexts]
    place = np.full(len(counts), -1)
    place[kept] = np.arange(len(kept))
    rows, columns, contexts, left = [], [], np.full((len(kept), longest), -1), []
    offset = 0
    for f in found:
        own = place[offset : offset + len(f.counts)]
        column = own[f.key]
        rows.append(f.word[column >= 0])
        columns.append(column[column >= 0])
        contexts[own[own >= 0], : f.neighbours.shape[1]] = f.neighbours[own >= 0]
        left.append(np.full(len(own), -(-f.neighbours.shape[1] // 2)))
        offset += len(own)
    row, column = np.concatenate(rows), np.concatenate(columns)
    table = sparse.coo_array(
        (np.ones(len(row), dtype=np.int64), (row, column)), shape=(V, len(kept))
    ).tocsr()
    table.sort_indices()
    words = tuple(stream.words[i] for i in word_ids)
    return Cloze(
        Support(table, words, ContextWords(contexts, words), word_ids),
        np.concatenate(left)[kept],
    )


@dataclass(frozen=True, eq=False)
class _Windows:
    """All gaps with n neighbours: word and context number of each, and every context once."""

    word: np.ndarray
    key: np.ndarray
    neighbours: np.ndarray
    counts: np.ndarray
    first: np.ndarray


def _windows(ids: np.ndarray, V: int, n: int) -> _Windows:
    left, right = -(-n // 2), n // 2
    offsets = [*range(-left, 0), *range(1, right + 1)]
    centre = np.arange(left, len(ids) - right)
    there = ids[centre] >= 0
    for offset in offsets:
        there &= ids[centre + offset] >= 0
    centre = centre[there]
    key = np.zeros(len(centre), dtype=np.int64)
    for offset in offsets:  # numbered anew each time, so that keys stay below tokens × words
        key = np.unique(key * V + ids[centre + offset], return_inverse=True)[1]
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    columns = [ids[centre[first] + offset] for offset in offsets]
    neighbours = np.stack(columns, axis=1).reshape(len(first), n)
    return _Windows(ids[centre], key, neighbours, counts, centre[first])
