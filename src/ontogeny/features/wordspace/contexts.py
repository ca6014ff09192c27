"""The corpus of an input set: which words follow, or fill, which contexts."""

from __future__ import annotations

import numpy as np

from ...inputs import Inputs
from .cloze import Cloze, cloze_of
from .support import ContextWords, Support, WordStream, support_of


def corpus_support(
    inputs: Inputs, masked: bool, vocab_size: int, n_contexts: int, lengths: tuple[int, int]
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
