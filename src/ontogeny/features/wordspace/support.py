"""The support matrix: which words follow which contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...errors import ArgumentError, check_flag, check_iterable, check_whole
from .counting import (
    count_next_words,
    frequent_contexts,
    frequent_words,
    highest_id,
    relabelled,
)

LONGEST = 1000  # words of a context: each length takes a pass over the text
# The largest id that a table over ids is made for; tokenizers stay far below it.
HIGHEST_ID = 1 << 24


@dataclass(frozen=True, eq=False)
class WordStream:
    """A text as numbers: word after word, negative where a text ends.

    Parameters
    ----------
    ids
        Integers of shape (n,), each below ``len(words)``; a negative one ends the context.
    words
        The word or token that each number stands for.

    Examples
    --------
    >>> stream = WordStream(np.array([0, 1, 2, 0, 3]), ("the", "cat", "saw", "dog"))
    >>> len(stream)
    5
    """

    ids: np.ndarray
    words: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)


class ContextWords(Sequence[tuple[str, ...]]):
    """The contexts as tuples of words, made when asked for; ``ids`` (m, longest) are their numbers.

    Numbers are rows of the support matrix; -1 stands after a context's end.

    Examples
    --------
    >>> contexts = ContextWords(np.array([[0, 1], [1, -1]]), ("to", "be"))
    >>> contexts[0], contexts.text(1), len(contexts)
    (('to', 'be'), 'be', 2)
    """

    def __init__(self, ids: np.ndarray, words: Sequence[str]) -> None:
        self.ids = ids
        self._words = words

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, j: Any) -> Any:
        if isinstance(j, slice):
            return [self[i] for i in range(*j.indices(len(self)))]
        return tuple(self._words[i] for i in self.ids[j] if i >= 0)

    def text(self, j: int) -> str:
        """Return context `j` with spaces between its words."""
        return " ".join(self[j])


@dataclass(frozen=True, eq=False)
class Support:
    """Which words follow which contexts, and how often.

    Parameters
    ----------
    counts
        Sparse integers of shape (V, m): how often each word follows each context.
    words
        The V words.
    contexts
        The m contexts, tuples of words.
    word_ids
        The id of each word in the tokens, shape (V,).

    Attributes
    ----------
    S : sparse array of shape (V, m)
        1 where the word follows the context, else 0.
    P : sparse array of shape (V, m)
        The share of each next word; columns sum to 1.
    pi : array of shape (m,)
        The share of each context in all counted positions.

    Notes
    -----
    Zhao and Thrampoulidis (2025), sec. 3.1: S[z, j] = 1 where P[z, j] > 0.

    Examples
    --------
    >>> stream = WordStream(np.array([0, 1, 0, 2, 0, 1]), ("a", "b", "c"))
    >>> support = support_of(stream, lengths=(1, 1))
    >>> support.words, list(support.contexts)
    (('a', 'b', 'c'), [('a',), ('b',), ('c',)])
    >>> support.P.toarray()[:, 0].round(2)
    array([0.  , 0.67, 0.33])
    """

    counts: sparse.csr_array
    words: tuple[str, ...]
    contexts: Sequence[tuple[str, ...]]
    word_ids: np.ndarray

    @cached_property
    def S(self) -> sparse.csr_array:  # noqa: D102
        return self._with(np.ones(self.counts.nnz))

    @cached_property
    def P(self) -> sparse.csr_array:  # noqa: D102
        return self._with(self.counts.data / self._per_context[self.counts.indices])

    @cached_property
    def pi(self) -> np.ndarray:  # noqa: D102
        return self._per_context / self._per_context.sum()

    @property
    def shape(self) -> tuple[int, int]:
        """V words and m contexts."""
        return self.counts.shape

    @property
    def _per_context(self) -> np.ndarray:
        return np.bincount(
            self.counts.indices, self.counts.data, minlength=self.shape[1]
        )

    def _with(self, data: np.ndarray) -> sparse.csr_array:
        parts = (data, self.counts.indices, self.counts.indptr)
        return sparse.csr_array(parts, shape=self.shape)


def support_of(
    stream: WordStream,
    vocab_size: int = 1000,
    n_contexts: int = 10_000,
    lengths: int | tuple[int, int] = (2, 6),
    *,
    excluded: Sequence[int] = (),
    per_length: bool = False,
) -> Support:
    """Count which words follow the most frequent contexts of a stream.

    `ontogeny.semantics.support_matrix` says what the arguments mean; `excluded` are ids.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or no context is followed by a word.

    Examples
    --------
    >>> support_of(
    ...     WordStream(np.array([0, 1, 0, 2, 0, 1]), ("a", "b", "c")), lengths=1
    ... ).shape
    (3, 3)
    """
    shortest, longest = checked_lengths(lengths)
    check_whole("n_contexts", n_contexts)
    check_flag("per_length", per_length)
    word_ids = vocabulary(stream, excluded, vocab_size)
    V = len(word_ids)
    ids = relabelled(stream.ids, word_ids)
    contexts = frequent_contexts(
        ids, V, n_contexts, shortest, longest, per_length=per_length
    )
    if not len(contexts.ids):
        raise ArgumentError(
            f"tokens hold no context of {shortest} to {longest} words that another word follows "
            f"({len(stream)} tokens, {V} different words kept)."
        )
    words = tuple(stream.words[i] for i in word_ids)
    counts = count_next_words(ids, contexts, V)
    return Support(counts, words, ContextWords(contexts.ids, words), word_ids)


def checked_lengths(lengths: Any) -> tuple[int, int]:
    """Return the shortest and the longest context, or refuse them."""
    one = isinstance(lengths, int | np.integer)
    bounds = [lengths, lengths]
    if not one:
        bounds = list(check_iterable("lengths", lengths, "two numbers"))
    whole = all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) for n in bounds
    )
    if len(bounds) != 2 or not whole:
        raise ArgumentError(
            f"lengths must be (shortest, longest) in words; got {lengths!r}."
        )
    if not 1 <= bounds[0] <= bounds[1] <= LONGEST:
        raise ArgumentError(
            f"lengths must have 1 <= shortest <= longest <= {LONGEST}; got {lengths!r}."
        )
    return int(bounds[0]), int(bounds[1])


def vocabulary(
    stream: WordStream, excluded: Sequence[int], vocab_size: int
) -> np.ndarray:
    """Return the most frequent ids of a stream that are not excluded, or refuse the stream."""
    check_whole("vocab_size", vocab_size)
    if highest_id(stream.ids) >= HIGHEST_ID:
        raise ArgumentError(
            f"tokens hold id {highest_id(stream.ids)}; ids must be below {HIGHEST_ID}. "
            "Number them first: np.unique(tokens, return_inverse=True)."
        )
    return frequent_words(stream.ids, np.array(excluded, dtype=np.int64), vocab_size)[0]
