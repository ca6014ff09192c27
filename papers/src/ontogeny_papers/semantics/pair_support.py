"""The support matrix of pairs of a context and a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ontogeny.errors import ArgumentError, check_iterable, check_texts, check_whole
from ontogeny.features.wordspace.counting import frequent_words
from ontogeny.features.wordspace.support import Support


def support_from_pairs(
    pairs: Iterable[tuple[Sequence[str] | str, str]],
    vocab_size: int | None = None,
    n_contexts: int | None = None,
) -> Support:
    """Count (context, next word) pairs, such as those of a template.

    Parameters
    ----------
    pairs
        Each a context (words, or a text that is split at spaces) and the word after it. Every pair
        counts once; repeat a pair to count it more often.
    vocab_size, n_contexts
        How many of the most frequent next words and contexts to keep; all by default. Ties go to
        the first met. Words of contexts need not be among the kept words.

    Raises
    ------
    ArgumentError
        If there is no pair or one is not a pair.

    Notes
    -----
    Zhao and Thrampoulidis (2025), sec. 3.1 and Fig. 2.

    Examples
    --------
    >>> pairs = [("grows roots", "rose"), ("grows roots", "oak"), ("barks", "dog")]
    >>> support = support_from_pairs(pairs)
    >>> support.words, list(support.contexts)
    (('rose', 'oak', 'dog'), [('grows', 'roots'), ('barks',)])
    """
    words: dict[str, int] = {}
    contexts: dict[tuple[str, ...], int] = {}
    rows = []
    columns = []
    for pair in check_iterable("pairs", pairs, "(context, next word) pairs"):
        context, word = _checked_pair(pair)
        rows.append(words.setdefault(word, len(words)))
        columns.append(contexts.setdefault(context, len(contexts)))
    if not rows:
        raise ArgumentError(
            "pairs must hold at least one (context, next word) pair; got none."
        )
    kept_words = _most_frequent("vocab_size", np.array(rows), vocab_size)
    inside = np.isin(rows, kept_words)
    frequent = _most_frequent("n_contexts", np.array(columns)[inside], n_contexts)
    counts = sparse.coo_array(
        (np.ones(len(rows), dtype=np.int64), (rows, columns)),
        (len(words), len(contexts)),
    ).tocsr()[kept_words][:, frequent]
    names = tuple(words)
    texts = tuple(contexts)
    return Support(
        sparse.csr_array(counts),
        tuple(names[i] for i in kept_words),
        tuple(texts[j] for j in frequent),
        kept_words,
    )


def _most_frequent(name: str, labels: np.ndarray, n: int | None) -> np.ndarray:
    if n is not None:
        check_whole(name, n)
    return frequent_words(
        labels, np.zeros(0, dtype=int), len(labels) if n is None else n
    )[0]


def _checked_pair(pair: Any) -> tuple[tuple[str, ...], str]:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise ArgumentError(
            f"pairs must hold (context, next word); one entry is {pair!r}."
        )
    context, word = pair
    if not isinstance(word, str):
        raise ArgumentError(f"pairs must hold words; one entry is {pair!r}.")
    split = context.split() if isinstance(context, str) else context
    return tuple(check_texts("the context of a pair", split, "words")), word
