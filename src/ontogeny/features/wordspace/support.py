"""The support matrix: which words follow which contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...errors import ArgumentError, check_flag, check_iterable, check_whole
from .corpus import Tokens, WordStream, token_stream
from .counting import count_next_words, frequent_contexts, frequent_words, highest_id, relabelled

LONGEST = 1000  # words of a context: each length takes a pass over the text
# The largest id that a table over ids is made for; tokenizers stay far below it.
HIGHEST_ID = 1 << 24


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
    >>> support = support_matrix("a b a c a b", lengths=(1, 1))
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
        return np.bincount(self.counts.indices, self.counts.data, minlength=self.shape[1])

    def _with(self, data: np.ndarray) -> sparse.csr_array:
        parts = (data, self.counts.indices, self.counts.indptr)
        return sparse.csr_array(parts, shape=self.shape)


def support_matrix(
    tokens: Tokens,
    vocab_size: int = 1000,
    n_contexts: int = 10_000,
    lengths: int | tuple[int, int] = (2, 6),
    *,
    exclude: Iterable[str | int] = ("<unk>",),
    names: Sequence[str] | None = None,
    per_length: bool = False,
) -> Support:
    """Count which words follow the most frequent contexts of a text.

    The `vocab_size` most frequent words are kept; every other word, an excluded one and the end of
    a text end the context. A context is the last few words before a word, all of them kept; every
    occurrence counts; the `n_contexts` most frequent over all lengths are taken. Ties go to what is
    met first (of contexts met at the same place, to the shorter). Never a dense array.

    Parameters
    ----------
    tokens
        Text, words or token ids: see :func:`token_stream`. For texts with options of their own
        and for ``datasets`` data sets pass ``word_stream(...)``, for (context, next word) pairs
        use :func:`support_from_pairs`.
    vocab_size
        Number V of words; all there are if that is less.
    n_contexts
        Number m of contexts; all there are if that is less.
    lengths
        Words in the shortest and the longest context, or the one length.
    exclude
        Words or ids that are neither words nor parts of contexts.
    names
        The word of each id, where ids are given.
    per_length
        Whether every length gets the same share of the contexts. By default the most frequent
        are taken whatever their length, and most are short.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or no context is followed by a word.

    Notes
    -----
    Zhao and Thrampoulidis (2025), sec. 5.1 ("simplified" corpora).

    Examples
    --------
    >>> support = support_matrix("the cat sat . the cat ran . the dog ran .", lengths=(1, 2))
    >>> support.shape
    (6, 14)
    >>> j = list(support.contexts).index(("the", "cat"))
    >>> [support.words[z] for z in support.S[:, [j]].nonzero()[0]]
    ['ran', 'sat']
    """
    shortest, longest = checked_lengths(lengths)
    check_whole("n_contexts", n_contexts)
    check_flag("per_length", per_length)
    stream = token_stream(tokens, names)
    word_ids = vocabulary(stream, exclude, vocab_size)
    V = len(word_ids)
    ids = relabelled(stream.ids, word_ids)
    found = frequent_contexts(ids, V, n_contexts, shortest, longest, per_length=per_length)
    if not len(found.ids):
        raise ArgumentError(
            f"tokens hold no context of {shortest} to {longest} words that another word follows "
            f"({len(stream)} tokens, {V} different words kept)."
        )
    words = tuple(stream.words[i] for i in word_ids)
    counts = count_next_words(ids, found, V)
    return Support(counts, words, ContextWords(found.ids, words), word_ids)


def checked_lengths(lengths: Any) -> tuple[int, int]:
    """Return the shortest and the longest context, or refuse them."""
    one = isinstance(lengths, int | np.integer)
    given = [lengths] * 2 if one else list(check_iterable("lengths", lengths, "two numbers"))
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in given)
    if len(given) != 2 or not whole:
        raise ArgumentError(f"lengths must be (shortest, longest) in words; got {lengths!r}.")
    if not 1 <= given[0] <= given[1] <= LONGEST:
        raise ArgumentError(
            f"lengths must have 1 <= shortest <= longest <= {LONGEST}; got {lengths!r}."
        )
    return int(given[0]), int(given[1])


def vocabulary(stream: WordStream, exclude: Iterable[str | int], vocab_size: int) -> np.ndarray:
    """Return the most frequent ids of a stream that are not excluded, or refuse the stream."""
    check_whole("vocab_size", vocab_size)
    if highest_id(stream.ids) >= HIGHEST_ID:
        raise ArgumentError(
            f"tokens hold id {highest_id(stream.ids)}; ids must be below {HIGHEST_ID}. "
            "Number them first: np.unique(tokens, return_inverse=True)."
        )
    return frequent_words(stream.ids, _excluded(stream, exclude), vocab_size)[0]


def _excluded(stream: WordStream, exclude: Iterable[str | int]) -> np.ndarray:
    """Return the ids to leave out; words that do not occur are left out already."""
    one = isinstance(exclude, str | int | np.integer)
    given: list[Any] = [exclude] if one else [*check_iterable("exclude", exclude, "words or ids")]
    for e in given:
        if not isinstance(e, str | int | np.integer):
            raise ArgumentError(f"exclude must hold words or ids; got {e!r}.")
    names = {e for e in given if isinstance(e, str)}
    ids = [int(e) for e in given if not isinstance(e, str) and 0 <= e < HIGHEST_ID]
    if names:
        ids += [i for i, word in enumerate(stream.words) if word in names]
    return np.array(ids, dtype=np.int64)
