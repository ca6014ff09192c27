"""Labels that any text has: a topic with its word taken out, and sentences with words swapped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ontogeny.errors import ArgumentError

_SHORT, _LONG = 6, 18  # words of a sentence
# Of a word that can be a topic: shorter ones are mostly function words.
_TOPIC_LETTERS = 5
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n\s*\n")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Labelled:
    """Sentences with labels 0 and 1, and the number of the text that each comes from."""

    texts: list[str]
    labels: list[int]
    documents: list[int]


def sentences(texts: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Return the words of every sentence of 6 to 18 words, with the number of its text.

    Examples
    --------
    >>> sentences(["Too short. The cat sat on the old mat."])
    [(0, ['The', 'cat', 'sat', 'on', 'the', 'old', 'mat.'])]
    """
    words_of = []
    for i, text in enumerate(texts):
        for sentence in _SENTENCE.split(text):
            words = sentence.split()
            if _SHORT <= len(words) <= _LONG:
                words_of.append((i, words))
    return words_of


def topic_word(texts: Sequence[str]) -> str:
    """Return the word of five letters or more that comes nearest to being in half of the texts.

    Raises
    ------
    ArgumentError
        If no such word is in at least two texts and missing in two.

    Examples
    --------
    >>> topic_word(["a river here", "the river there", "some trees", "other things"])
    'river'
    """
    counts = Counter(
        word for text in texts for word in _words(text) if len(word) >= _TOPIC_LETTERS
    )
    usable = [word for word, count in counts.items() if 2 <= count <= len(texts) - 2]
    if not usable:
        raise ArgumentError(
            f"texts must share a word of at least {_TOPIC_LETTERS} letters that is in two of them "
            f"and missing in two; none of the {len(texts)} does."
        )
    return min(usable, key=lambda word: (abs(counts[word] - len(texts) / 2), word))


def of_topic(
    texts: Sequence[str], count: int, random_state: int
) -> tuple[str, Labelled]:
    """Return a topic and `count` sentences, half of texts with its word; the word is left out.

    A semantic label: what the text is about, without the word that says so.
    """
    topic = topic_word(texts)
    with_it = [topic in _words(text) for text in texts]
    examples = []
    for i, words in sentences(texts):
        others = [word for word in words if topic not in _words(word)]
        if len(others) >= _SHORT:
            examples.append((" ".join(others), int(with_it[i]), i))
    return topic, _balanced(examples, count, random_state)


def of_word_order(texts: Sequence[str], count: int, random_state: int) -> Labelled:
    """Return `count` sentences, half of them with two words swapped: a syntactic label.

    Of each sentence either itself (1) or what is swapped (0) is taken.
    """
    rng = np.random.default_rng(random_state)
    examples = []
    for i, words in sentences(texts):
        label = int(rng.integers(2))
        words = list(words)
        a, b = sorted(rng.choice(len(words), 2, replace=False))
        if words[a].lower() == words[b].lower():
            continue
        if not label:
            words[a], words[b] = words[b], words[a]
        examples.append((" ".join(words), label, i))
    return _balanced(examples, count, random_state)


def _balanced(
    rows: Sequence[tuple[str, int, int]], count: int, random_state: int
) -> Labelled:
    order = np.random.default_rng([random_state, 1]).permutation(len(rows))
    examples: list[tuple[str, int, int]] = []
    for label in (0, 1):
        members = [rows[i] for i in order if rows[i][1] == label]
        if len(members) < 2:
            raise ArgumentError(
                f"texts must hold at least two sentences of {_SHORT} to {_LONG} words with each "
                f"label; of label {label} there are {len(members)}."
            )
        examples += members[: count // 2]
    texts, labels, documents = zip(*examples, strict=True)
    return Labelled(list(texts), list(labels), list(documents))


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
