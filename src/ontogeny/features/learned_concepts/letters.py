"""Letters of all scripts: characters that several tokens write, marks on letters, and spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

_BYTE = re.compile(r"<0x([89A-F][0-9A-F])>")
_LONE = re.compile("[\udc80-\udcff]")
# Thai and Lao, Burmese, Khmer, and from Chinese radicals on all but Hangul have no spaces.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\uabff\ud7b0-\U0010ffff]"
)


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, a digit or a mark on one, as vowels of Hindi are.

    Examples
    --------
    >>> [is_letter(c) for c in ("é", "\N{DEVANAGARI VOWEL SIGN AA}", "7", ".", " ")]
    [True, True, True, False, False]
    """
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def is_punctuation(word: str) -> bool:
    """Return whether a word has no letter and no picture in it.

    Examples
    --------
    >>> [is_punctuation(word) for word in ('."', "+", "a.", "", "\N{PARTY POPPER}")]
    [True, True, False, False, False]
    """
    return bool(word) and not any(is_letter(c) or _is_picture(c) for c in word)


def _is_picture(character: str) -> bool:
    return unicodedata.category(character) == "So"


def has_picture(word: str) -> bool:
    """Return whether a word holds an emoji or another picture."""
    return any(map(_is_picture, word))


def has_digit(word: str) -> bool:
    """Return whether a word holds a digit; what a lone byte is written with is none.

    Examples
    --------
    >>> has_digit("a7"), has_digit("a<0xC3>")
    (True, False)
    """
    return any(map(str.isdigit, _BYTE.sub("", word)))


def begins_alone(character: str) -> bool:
    """Return whether a character begins a word though no space stands before it.

    Examples
    --------
    >>> [begins_alone(c) for c in ("語", "ก", "한", "a", "\N{THAI CHARACTER SARA II}")]
    [True, True, False, False, False]
    """
    is_mark = unicodedata.category(character)[0] == "M"
    return bool(_UNSPACED.match(character)) and not is_mark


def whole_characters(pieces: Sequence[str]) -> tuple[list[str], list[bool]]:
    """Return pieces with whole characters for bytes, and which lie inside of a character.

    A character of several pieces stands where its first byte does.

    Examples
    --------
    >>> whole_characters(["caf", "<0xC3>", "<0xA9>", " a"])
    (['caf', 'é', '', ' a'], [False, False, True, False])
    >>> whole_characters(["<0xA9>", "<0xC3>"])
    (['<0xA9>', '<0xC3>'], [False, False])
    """
    if not any(map(_BYTE.search, pieces)):
        return list(pieces), [False] * len(pieces)
    raw = [
        _BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), piece).encode(
            "utf-8", "surrogateescape"
        )
        for piece in pieces
    ]
    starts = np.cumsum([0, *map(len, raw[:-1])])
    whole = [""] * len(pieces)
    at = 0
    for character in b"".join(raw).decode("utf-8", "surrogateescape"):
        place = int(np.searchsorted(starts, at, side="right")) - 1
        at += len(character.encode("utf-8", "surrogateescape"))
        whole[place] += _LONE.sub(_marked, character)
    inside = [
        bool(piece) and not text for piece, text in zip(pieces, whole, strict=True)
    ]
    return whole, inside


def _marked(byte: re.Match[str]) -> str:
    return f"<0x{ord(byte[0]) - 0xDC00:02X}>"
