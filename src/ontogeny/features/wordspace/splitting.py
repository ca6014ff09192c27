"""Cutting text into words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...errors import check_choice, check_flag, check_texts

# One word is a special token such as <unk>, WikiText's @-@, one CJK character, a run of anything
# but spaces and punctuation (so that the marks of Indic and Semitic scripts stay in their words,
# which \w would cut out), apostrophes inside it included; or one punctuation mark.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_MARKS = (
    r"!-/:-@\[-`{-~\u00a1-\u00bf\u00d7\u00f7\u05be\u05c0\u05c3\u060c\u061b\u061f\u06d4\u0964\u0965"
    r"\u2000-\u200b\u200e-\u206f\u20a0-\u20cf\u2190-\u2bff\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
)
_LETTERS = rf"[^\s{_MARKS}{_CJK}]+"
_WORD = re.compile(rf"</?\w+>|<\|\w+\|>|@[-,.]@|[{_CJK}]|{_LETTERS}(?:['’]{_LETTERS})*|[^\s]")
_IS_MARK = re.compile(rf"[{_MARKS}]+")


def splitter(
    split: str | Callable[[str], Any], lowercase: bool, punctuation: bool
) -> Callable[[str], list[str]]:
    """Return the function that cuts a text into words: what `word_stream` takes as `split`.

    With ``"words"``, punctuation marks are words of their own, apostrophes stay inside of them, and
    one Chinese or Japanese character, and tokens such as ``<unk>`` and ``@-@`` stand alone.

    Raises
    ------
    ArgumentError
        If `split` is neither a function nor a name that is known.

    Examples
    --------
    >>> splitter("spaces", lowercase=True, punctuation=False)("A man , a plan")
    ['a', 'man', 'a', 'plan']
    >>> splitter("words", lowercase=True, punctuation=True)("Tom said: I'm 5!")
    ['tom', 'said', ':', "i'm", '5', '!']
    """
    check_flag("lowercase", lowercase)
    check_flag("punctuation", punctuation)
    tokenize = getattr(split, "tokenize", None)
    if tokenize is not None:
        return tokenize
    if callable(split):
        return lambda text: check_texts("split: what it returns", split(text), "words")
    check_choice("split", split, ("words", "spaces"))
    parts = _WORD.findall if split == "words" else str.split

    def cut(text: str) -> list[str]:
        words = parts(text.lower() if lowercase else text)
        return words if punctuation else [w for w in words if not _IS_MARK.fullmatch(w)]

    return cut
