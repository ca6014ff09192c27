"""Words of all scripts: digits, punctuation, pictures, and where no space stands before a word."""

from __future__ import annotations

import re
import unicodedata

from ...characters import is_letter, without_bytes

# Thai and Lao, Burmese, Khmer, and from Chinese radicals on all but Hangul have no spaces.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\uabff\ud7b0-\U0010ffff]"
)


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
    """Return whether a word holds a digit."""
    return any(map(str.isdigit, without_bytes(word)))


def begins_alone(character: str) -> bool:
    """Return whether a character begins a word though no space stands before it.

    Examples
    --------
    >>> [begins_alone(c) for c in ("語", "ก", "한", "a", "\N{THAI CHARACTER SARA II}")]
    [True, True, False, False, False]
    """
    is_mark = unicodedata.category(character)[0] == "M"
    return bool(_UNSPACED.match(character)) and not is_mark
