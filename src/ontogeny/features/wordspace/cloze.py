"""The corpus of an input set, and of masked language models the support matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ...errors import ArgumentError, check_whole
from ...inputs import Inputs
from .counting import relabelled
from .support import (
    ContextWords,
    Support,
    WordStream,
    checked_lengths,
    support_of,
    vocabulary,
)


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


def cloze_of(
    stream: WordStream,
    vocab_size: int = 1000,
    n_contexts: int = 10_000,
    lengths: tuple[int, int] = (2, 4),
    *,
    excluded: Sequence[int] = (),
) -> Cloze:
    """Count which words stand in the gaps of the most frequent two-sided contexts of a stream.

    `ontogeny.semantics.cloze_support` says what the arguments mean; `excluded` are ids.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or no gap has neighbours.

    Examples
    --------
    >>> stream = WordStream(np.array([0, 1, 2, 0, 3, 2]), ("the", "cat", "sat", "dog"))
    >>> cloze = cloze_of(stream, lengths=(2, 2))
    >>> [" ".join(context) for context in cloze.support.contexts]
    ['the sat', 'cat the', 'sat dog']
    """
    shortest, longest = checked_lengths(lengths)
    if shortest < 2:
        raise ArgumentError(
            f"lengths must be at least 2, one word on each side; got {lengths!r}."
        )
    check_whole("n_contexts", n_contexts)
    word_ids = vocabulary(stream, excluded, vocab_size)
    ids = relabelled(stream.ids, word_ids)
    V = len(word_ids)
    gaps = [_gaps(ids, V, n, longest) for n in range(shortest, longest + 1)]
    word, key, neighbours, counts, first = (
        np.concatenate(p) for p in zip(*gaps, strict=True)
    )
    if not len(counts):
        raise ArgumentError(
            f"tokens hold no word between {shortest} to {longest} neighbours "
            f"({len(stream)} tokens, {V} different words kept)."
        )
    # The contexts of each length were numbered from 0; now they follow one another.
    sizes = [len(number_of) for _, _, _, number_of, _ in gaps]
    key += np.repeat(np.cumsum(sizes) - sizes, [len(words) for words, *_ in gaps])
    order = np.lexsort((first, -counts))[:n_contexts]
    place = np.full(len(counts), -1)
    place[order] = np.arange(len(order))
    column = place[key]
    row = word[column >= 0]
    column = column[column >= 0]
    table = sparse.coo_array(
        (np.ones(len(row), dtype=np.int64), (row, column)), shape=(V, len(order))
    ).tocsr()
    table.sort_indices()
    words = tuple(stream.words[i] for i in word_ids)
    contexts = neighbours[order]
    left = -(-(contexts >= 0).sum(axis=1) // 2)
    return Cloze(Support(table, words, ContextWords(contexts, words), word_ids), left)


def _gaps(ids: np.ndarray, V: int, n: int, longest: int) -> tuple[np.ndarray, ...]:
    """Return all gaps with n neighbours, and what stands around them.

    Word and context number of each gap; then, of every context, its words (-1 up to `longest`), how
    often it occurs, and where first.
    """
    left = -(-n // 2)
    right = n // 2
    offsets = [*range(-left, 0), *range(1, right + 1)]
    centre = np.arange(left, len(ids) - right)
    there = ids[centre] >= 0
    for offset in offsets:
        there &= ids[centre + offset] >= 0
    centre = centre[there]
    key = np.zeros(len(centre), dtype=np.int64)
    for offset in offsets:
        # Numbered anew each time, so that keys stay below tokens × words.
        key = np.unique(key * V + ids[centre + offset], return_inverse=True)[1]
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    neighbours = np.full((len(first), longest), -1)
    for place, offset in enumerate(offsets):
        neighbours[:, place] = ids[centre[first] + offset]
    return ids[centre], key, neighbours, counts, centre[first]


def corpus_support(
    inputs: Inputs,
    masked: bool,
    vocab_size: int,
    n_contexts: int,
    lengths: tuple[int, int],
) -> Cloze:
    """Return the support matrix of an input set's tokens.

    Words are the ids of the model's own tokenizer; special tokens and padding end a context. A
    causal model's contexts have their gap after the last word.

    Raises
    ------
    ArgumentError
        If there is no context.
    """
    ids = np.full((len(inputs), inputs.ids.shape[1] + 1), -1, dtype=np.int64)
    ids[:, :-1] = np.where(inputs.ordinary, inputs.ids, -1)
    stream = WordStream(ids.ravel(), _names(inputs))
    if masked:
        return cloze_of(stream, vocab_size, n_contexts, lengths)
    return next_word(support_of(stream, vocab_size, n_contexts, lengths))


def _names(inputs: Inputs) -> list[str]:
    """Return the characters of every token id as they stand in a text, else the id."""
    names = [str(i) for i in range(int(inputs.ids.max()) + 1)]
    text, column = np.nonzero(inputs.ordinary)
    start = inputs.mask.argmax(axis=1)
    ids, first = np.unique(inputs.ids[text, column], return_index=True)
    for token, i in zip(ids.tolist(), first.tolist(), strict=True):
        word = inputs.word(int(text[i]), int(column[i] - start[text[i]]))
        names[token] = word or names[token]
    return names


def next_word(support: Support) -> Cloze:
    """Return next-word contexts as gaps after their last word."""
    assert isinstance(support.contexts, ContextWords)
    return Cloze(support, (support.contexts.ids >= 0).sum(axis=1))
