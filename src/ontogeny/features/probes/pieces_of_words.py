"""Where words stand among tokens: the last piece of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...inputs import Inputs
from ...tasks.records import some_of
from .labelled_words import Sentence


class Words(NamedTuple):
    """Labelled words of some texts.

    Attributes
    ----------
    inputs
        The texts.
    text, position
        (n,) the text of each word, and its last token, counted from the text's first.
    kind, label
        (n,) the word and its label.
    left_out
        In a line each, what was left out and why.
    """

    inputs: Inputs
    text: np.ndarray
    position: np.ndarray
    kind: np.ndarray
    label: np.ndarray
    left_out: tuple[str, ...]


def placed(sentences: Sequence[Sentence], tokenizer: Any, longest: int) -> Words:
    """Return the labelled words of texts at their last tokens.

    Raises
    ------
    ArgumentError
        If there is no tokenizer that says where tokens stand, or no word is left.
    """
    if tokenizer is None:
        raise ArgumentError("labels of words need the run's tokenizer; it has none.")
    texts = [sentence.text for sentence in sentences]
    inputs = Inputs.from_texts(
        texts, tokenizer, max_length=longest, labels=range(len(texts))
    )
    if inputs.spans is None or inputs.labels is None:
        raise ArgumentError(
            "labels of words need a fast tokenizer, which says where its tokens stand; got "
            f"{type(tokenizer).__name__}."
        )
    found: list[tuple[int, int, str, str]] = []
    lost: list[str] = []
    for row, number in enumerate(inputs.labels.tolist()):
        real = np.flatnonzero(inputs.mask[row])
        spans = np.where(inputs.special[row, real, None], 0, inputs.spans[row, real])
        sentence = sentences[number]
        places = [_last_piece(spans, *word[:2]) for word in sentence.words]
        for word, place in zip(sentence.words, places, strict=True):
            if place < 0 or places.count(place) > 1:
                shown = sentence.text[word[0] : word[1]]
                why = "is beyond the cut" if place < 0 else "shares its last piece"
                lost.append(f"{shown!r} {why}")
            else:
                found.append((row, place, word[2], word[3]))
    if not found:
        raise ArgumentError(
            f"no labelled word is left of {len(lost):,}: {some_of(lost)}."
        )
    text, position, kind, label = (np.array(part) for part in zip(*found, strict=True))
    left_out = []
    if lost:
        left_out.append(f"{len(lost):,} words: {some_of(lost)}")
    if multiword := sum(sentence.left_out for sentence in sentences):
        left_out.append(f"{multiword:,} words that multiword tokens are written for")
    if inputs.dropped:
        left_out.append(f"{inputs.dropped:,} texts that the tokenizer cannot read")
    return Words(inputs, text, position, kind, label, tuple(left_out))


def _last_piece(spans: np.ndarray, begin: int, end: int) -> int:
    """Return the last token that holds a character of a word; -1 if its last one is not there."""
    holds = (spans[:, 0] < end) & (spans[:, 1] > begin)
    if not holds.any():
        return -1
    last = int(np.flatnonzero(holds)[-1])
    return last if spans[last, 1] >= end else -1
