"""Minimal pairs in files: a right and a wrong text that differ in little."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...tasks.records import Example, group_of, named, text_of

PROMPT = ("prompt", "question", "context")
RIGHT = ("sentence_good", "right", "good", "correct", "grammatical", "acceptable")
_MARKS = re.compile(r"\w+|[^\w\s]")  # words, and marks apart from them
WRONG = ("sentence_bad", "wrong", "bad", "incorrect", "ungrammatical", "unacceptable")


def is_pairs(fields: Sequence[str]) -> bool:
    """Return whether records with these fields are pairs.

    Examples
    --------
    >>> is_pairs(["sentence_good", "sentence_bad", "UID"]), is_pairs(["text", "label"])
    (True, False)
    """
    return named(fields, RIGHT) is not None and named(fields, WRONG) is not None


def pair_of(record: Mapping[str, Any], stem: str, where: str, method: str) -> Example:
    """Return the pair of a record, its right text first.

    Parameters
    ----------
    record, stem, where
        The record, the name of its file, and its line.
    method
        ``"sentence"``: whole texts, or what follows a prompt; ``"prefix"``: BLiMP's prefix methods,
        one word after the same prefix, or the same word after two.

    Raises
    ------
    ArgumentError
        If it holds none.
    """
    group = group_of(record, stem)
    if method == "prefix":
        return _prefix_pair(record, group, where)
    right = text_of(record, named(record, RIGHT), "right")
    wrong = text_of(record, named(record, WRONG), "wrong")
    if right == wrong:
        raise ArgumentError("its texts are equal")
    if (field := named(record, PROMPT)) is not None and record[field]:
        prompt = text_of(record, field, "prompt")
        return Example.after(prompt, [right.strip(), wrong.strip()], 0, group, where)
    return Example((right, wrong), ("", ""), 0, group, where)


def _prefix_pair(record: Mapping[str, Any], group: str, where: str) -> Example:
    if record.get("one_prefix_method") is True:
        names = ("one_prefix_prefix", "one_prefix_prefix", "one_prefix_word_good",
                 "one_prefix_word_bad")  # fmt: skip
    elif record.get("two_prefix_method") is True:
        names = ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word",
                 "two_prefix_word")  # fmt: skip
    else:
        raise ArgumentError("it is not made for a prefix method; leave method = 'sentence'")
    before_right, before_wrong, right, wrong = (text_of(record, name, name) for name in names)
    if (before_right, right) == (before_wrong, wrong):
        raise ArgumentError("its texts are equal")
    texts, before = (f" {right}", f" {wrong}"), (before_right, before_wrong)
    return Example(texts, before, 0, group, where)


def contrasts(pairs: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    """Return which words each pair sets against which, and how far liking a word would go.

    Returns
    -------
    contrast
        (n,) a number for the words that only the right text has, and those that only the wrong one
        has; pairs of the same words in another order have one each.
    turned
        (n,) the number of the same contrast the other way round, -1 where no pair has it, and the
        pair's own where its words stand in another order: no liking for a word tells its texts
        apart.

    Examples
    --------
    >>> records = {"right": "he is", "wrong": "he are"}, {"right": "we are", "wrong": "we is"}
    >>> pairs = [pair_of(record, "", "", "sentence") for record in records]
    >>> [values.tolist() for values in contrasts(pairs)]
    [[0, 1], [1, 0]]
    """
    numbers: dict[Any, int] = {}
    keys = []
    for place, pair in enumerate(pairs):
        right, wrong = (Counter(_MARKS.findall(text.lower())) for text in pair.texts)
        if pair.before[0] != pair.before[1]:
            right, wrong = (Counter(text.split()) for text in pair.before)
        sides = tuple(
            tuple(sorted((a - b).elements())) for a, b in ((right, wrong), (wrong, right))
        )
        key = (pair.group, *(sides if any(sides) else (place,)))
        numbers.setdefault(key, len(numbers))
        keys.append(key)
    turned = np.array([numbers.get((key[0], *key[:0:-1]), -1) for key in keys])
    return np.array([numbers[key] for key in keys]), turned


def liking(contrast: np.ndarray, turned: np.ndarray) -> float:
    """Return the largest accuracy on a group that a fixed liking for one word each would give.

    .5 where every contrast stands as often the other way round, or is one of order.

    Examples
    --------
    >>> liking(np.array([0, 1]), np.array([1, 0])), liking(np.array([0, 0]), np.array([-1, -1]))
    (0.5, 1.0)
    >>> liking(np.array([0, 1]), np.array([0, 1]))
    0.5
    """
    counts = Counter(contrast.tolist())
    sides = {min(c, t) if t >= 0 else c: (counts[c], counts.get(t, 0))
             for c, t in zip(contrast.tolist(), turned.tolist(), strict=True)}  # fmt: skip
    of_order = int((contrast == turned).sum())
    return (sum(max(pair) for pair in sides.values()) - of_order / 2) / len(contrast)
