"""Minimal pairs in files: a right and a wrong text that differ in little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import ArgumentError
from ...tasks.records import Example, group_of, named, text_of

PROMPT = ("prompt", "question", "context")
RIGHT = ("sentence_good", "right", "good", "correct", "grammatical", "acceptable")
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
    _refuse_two(record)
    right = text_of(record, named(record, RIGHT), "right")
    wrong = text_of(record, named(record, WRONG), "wrong")
    field = named(record, PROMPT)
    has_prompt = field is not None and bool(record[field])
    if has_prompt:  # what follows it is read without the space around
        right = right.strip()
        wrong = wrong.strip()
    if right == wrong:
        raise ArgumentError("its texts are equal")
    if has_prompt:
        return Example.after(
            text_of(record, field, "prompt"), [right, wrong], 0, group, where
        )
    return Example((right, wrong), ("", ""), 0, group, where)


def _refuse_two(record: Mapping[str, Any]) -> None:
    """Refuse a record that holds two pairs by two names of fields: either may be meant."""
    there = [
        names for names in zip(RIGHT, WRONG, strict=True) if {*names} <= record.keys()
    ]
    texts = {tuple(str(record[name]) for name in names) for names in there}
    if len(texts) > 1:
        both = " and ".join(f"{right}, {wrong}" for right, wrong in there)
        raise ArgumentError(f"it holds two pairs, in {both}; leave one of them")


def _prefix_pair(record: Mapping[str, Any], group: str, where: str) -> Example:
    if record.get("one_prefix_method") is True:
        names = (
            "one_prefix_prefix",
            "one_prefix_prefix",
            "one_prefix_word_good",
            "one_prefix_word_bad",
        )
    elif record.get("two_prefix_method") is True:
        names = (
            "two_prefix_prefix_good",
            "two_prefix_prefix_bad",
            "two_prefix_word",
            "two_prefix_word",
        )
    else:
        raise ArgumentError(
            "it is not made for a prefix method; leave method = 'sentence'"
        )
    before_right, before_wrong, right, wrong = (
        text_of(record, name, name) for name in names
    )
    if (before_right, right) == (before_wrong, wrong):
        raise ArgumentError("its texts are equal")
    texts = (f" {right}", f" {wrong}")
    before = (before_right, before_wrong)
    return Example(texts, before, 0, group, where)
