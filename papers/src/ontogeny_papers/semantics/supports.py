"""Support matrices of texts, words or token ids, of next words and of words in gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ontogeny.errors import ArgumentError, check_iterable
from ontogeny.features.wordspace.cloze import Cloze, cloze_of
from ontogeny.features.wordspace.support import (
    HIGHEST_ID,
    Support,
    WordStream,
    support_of,
)

from .corpus import Tokens, token_stream


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
    >>> support = support_matrix(
    ...     "the cat sat . the cat ran . the dog ran .", lengths=(1, 2)
    ... )
    >>> support.shape
    (6, 14)
    >>> j = list(support.contexts).index(("the", "cat"))
    >>> [support.words[z] for z in support.S[:, [j]].nonzero()[0]]
    ['ran', 'sat']
    """
    stream = token_stream(tokens, names)
    ids = _excluded(stream, exclude)
    return support_of(
        stream, vocab_size, n_contexts, lengths, excluded=ids, per_length=per_length
    )


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
    >>> cloze = cloze_support(
    ...     "the cat sat . the dog sat . the cat ran .", lengths=(2, 2)
    ... )
    >>> j = list(cloze.support.contexts).index(("the", "sat"))
    >>> (
    ...     [cloze.support.words[z] for z in cloze.support.S[:, [j]].nonzero()[0]],
    ...     int(cloze.left[j]),
    ... )
    (['cat', 'dog'], 1)
    """
    stream = token_stream(tokens, names)
    ids = _excluded(stream, exclude)
    return cloze_of(stream, vocab_size, n_contexts, lengths, excluded=ids)


def _excluded(stream: WordStream, exclude: Iterable[str | int]) -> list[int]:
    """Return the ids to leave out; words that do not occur are left out already."""
    one = isinstance(exclude, str | int | np.integer)
    items: list[Any] = (
        [exclude] if one else [*check_iterable("exclude", exclude, "words or ids")]
    )
    for e in items:
        if not isinstance(e, str | int | np.integer):
            raise ArgumentError(f"exclude must hold words or ids; got {e!r}.")
    names = {e for e in items if isinstance(e, str)}
    ids = [int(e) for e in items if not isinstance(e, str) and 0 <= e < HIGHEST_ID]
    # Ids without names have millions of decimal ones, of which `<unk>` is none.
    if any(name in stream.words for name in names):
        # Of ids without names there may be 2**40, which are refused later.
        words = islice(stream.words, HIGHEST_ID)
        ids += [i for i, word in enumerate(words) if word in names]
    return ids
