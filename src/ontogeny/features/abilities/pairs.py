"""Minimal pairs in files: a right and a wrong text that differ in little."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...tasks.records import Records, group_of, named, read_examples, text_of

RIGHT = ("sentence_good", "right", "good", "correct", "grammatical", "acceptable")
_MARKS = re.compile(r"\w+|[^\w\s]")  # words, and marks apart from them
WRONG = ("sentence_bad", "wrong", "bad", "incorrect", "ungrammatical", "unacceptable")


@dataclass(frozen=True)
class Pair:
    """One pair; what stands before a text is read and has no score."""

    right: str
    wrong: str
    group: str
    where: str
    before_right: str = ""
    before_wrong: str = ""

    @property
    def texts(self) -> tuple[str, str]:
        """Both texts, the right one first."""
        return self.right, self.wrong

    @property
    def before(self) -> tuple[str, str]:
        """What stands before each."""
        return self.before_right, self.before_wrong


def is_pairs(fields: Sequence[str]) -> bool:
    """Return whether records with these fields are pairs.

    Examples
    --------
    >>> is_pairs(["sentence_good", "sentence_bad", "UID"]), is_pairs(["text", "label"])
    (True, False)
    """
    return named(fields, RIGHT) is not None and named(fields, WRONG) is not None


def pairs_of(records: Records, method: str) -> tuple[list[Pair], list[str]]:
    """Return the pairs of a file, and in a line each what was left out and why.

    Parameters
    ----------
    records
        Of the file.
    method
        ``"sentence"``: whole texts; ``"prefix"``: BLiMP's prefix methods, one word after the same
        prefix, or the same word after two.

    Examples
    --------
    >>> records = Records("a.jsonl", ((1, {"right": "it is", "wrong": "it is"}),))
    >>> pairs_of(records, "sentence")
    ([], ['a.jsonl, line 1: its texts are equal'])
    """
    return read_examples(records, partial(pair_of, method=method), "pair")


def pair_of(record: Mapping[str, Any], stem: str, where: str, method: str) -> Pair:
    """Return the pair of a record.

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
    return Pair(right, wrong, group, where)


def _prefix_pair(record: Mapping[str, Any], group: str, where: str) -> Pair:
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
    return Pair(f" {right}", f" {wrong}", group, where, before_right, before_wrong)


def contrasts(pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """Return which words each pair sets against which, and how far liking a word would go.

    Returns
    -------
    contrast
        (n,) a number for the words that only the right text has, and those that only the wrong one
        has; pairs of the same words in another order have one each.
    turned
        (n,) the number of the same contrast the other way round, -1 where no pair has it.

    Examples
    --------
    >>> pairs = [Pair("he is", "he are", "", ""), Pair("we are", "we is", "", "")]
    >>> [found.tolist() for found in contrasts(pairs)]
    [[0, 1], [1, 0]]
    """
    numbers: dict[Any, int] = {}
    keys = []
    for place, pair in enumerate(pairs):
        right, wrong = (Counter(_MARKS.findall(text.lower())) for text in (pair.right, pair.wrong))
        if pair.before_right != pair.before_wrong:
            right, wrong = Counter(pair.before_right.split()), Counter(pair.before_wrong.split())
        sides = tuple(
            tuple(sorted((a - b).elements())) for a, b in ((right, wrong), (wrong, right))
        )
        key = (pair.group, *(sides if any(sides) else (place,)))
        numbers.setdefault(key, len(numbers))
        keys.append(key)
    contrast = np.array([numbers[key] for key in keys])
    turned = [numbers.get((key[0], *key[:0:-1]), -1) if len(key) == 3 else -1 for key in keys]
    return contrast, np.array(turned)


def liking(contrast: np.ndarray, turned: np.ndarray) -> float:
    """Return the largest accuracy on a group that a fixed liking for one word each would give.

    .5 where every contrast stands as often the other way round.

    Examples
    --------
    >>> liking(np.array([0, 1]), np.array([1, 0])), liking(np.array([0, 0]), np.array([-1, -1]))
    (0.5, 1.0)
    """
    counts = Counter(contrast.tolist())
    sides = {min(c, t) if t >= 0 else c: (counts[c], counts.get(t, 0))
             for c, t in zip(contrast.tolist(), turned.tolist(), strict=True)}  # fmt: skip
    return sum(max(pair) for pair in sides.values()) / len(contrast)
