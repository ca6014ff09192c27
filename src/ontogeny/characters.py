"""Tokens as people read them: no character hidden, marks in words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_COMBINING = ("Mn", "Me", "Mc")
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
ISOLATE = "\N{FIRST STRONG ISOLATE}"
END_OF_ISOLATE = "\N{POP DIRECTIONAL ISOLATE}"
_FROM_THE_RIGHT = ("R", "AL", "AN")
_SYMBOLS = {"\n": "↵", "\t": "⇥", "\x7f": "\N{SYMBOL FOR DELETE}"}
_PICTURES = ord("\N{SYMBOL FOR NULL}")

# What people call a mark, where Unicode's name is another.
_NAMES = {
    "\n": "new line",
    "\t": "tab",
    "\r": "carriage return",
    '"': "double quote",
    "'": "apostrophe",
    "_": "underscore",
    "-": "hyphen",
    "/": "slash",
    "\\": "backslash",
    "@": "at sign",
    "#": "hash",
    "^": "caret",
    "`": "backtick",
    "|": "vertical bar",
    "&": "ampersand",
    "«": "left angle quote",
    "»": "right angle quote",
    "\N{SOFT HYPHEN}": "soft hyphen",
    "\N{ZERO WIDTH NO-BREAK SPACE}": "byte order mark",
}
BYTE = re.compile(r"<0x([89A-F][0-9A-F])>")
"""How a byte is written that alone is no character."""
_LONE = re.compile("[\udc80-\udcff]")
_BRACKET = re.compile(r"^(left|right) (.*parenthesis|.*bracket)$")
_RUNS_NAMED = 3


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, a digit or a mark on one, as vowels of Hindi are.

    Examples
    --------
    >>> [is_letter(c) for c in ("é", "\N{DEVANAGARI VOWEL SIGN AA}", "7", ".", "")]
    [True, True, True, False, False]
    """
    return character.isalnum() or unicodedata.category(character or " ")[0] == "M"


def without_bytes(piece: str) -> str:
    """Return a token without its bytes that are no whole character.

    Examples
    --------
    >>> without_bytes(" a<0xC3>"), without_bytes("<0x41>")
    (' a', '<0x41>')
    """
    return BYTE.sub("", piece)


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
    if not any(map(BYTE.search, pieces)):
        return list(pieces), [False] * len(pieces)
    raw = [
        BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), piece).encode(
            "utf-8", "surrogateescape"
        )
        for piece in pieces
    ]
    # Which piece each byte is of.
    place = [i for i, part in enumerate(raw) for _ in part]
    whole = [""] * len(pieces)
    at = 0
    for character in b"".join(raw).decode("utf-8", "surrogateescape"):
        whole[place[at]] += _LONE.sub(_marked, character)
        at += len(character.encode("utf-8", "surrogateescape"))
    inside = [
        bool(piece) and not text for piece, text in zip(pieces, whole, strict=True)
    ]
    return whole, inside


def _marked(byte: re.Match[str]) -> str:
    return f"<0x{ord(byte[0]) - 0xDC00:02X}>"


def escaped(character: str) -> str:
    r"""Return a character that is not seen as an escape, any other as it is.

    Not seen are control, formatting, private and unassigned characters, and what separates lines.

    Examples
    --------
    >>> escaped("a"), escaped("\u200b")
    ('a', '\\u200b')
    """
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape").decode("ascii")
    return character


def shown(piece: str) -> str:
    r"""Return a token so that each character of it is seen and none changes what stands around it.

    Spaces stay. A new line becomes ``↵``, a tab ``⇥``, another control character its Unicode
    picture; other characters without a form of their own become escapes, among them those that
    turn the direction of text. Joiners stay between two characters that they can join. A
    combining mark at the start gets a dotted circle. Text that runs from the right is isolated
    (U+2068 and U+2069; Unicode Standard Annex 9). Nothing is escaped for HTML.

    Examples
    --------
    >>> shown(" the"), shown("\n"), shown("a\u202eb")
    (' the', '↵', 'a\\u202eb')
    >>> shown(" \u05d0\u05d1").encode("unicode_escape")
    b' \\u2068\\u05d0\\u05d1\\u2069'
    """
    written = within(piece)
    inner = written.strip(" ")
    if not runs_from_the_right(inner):
        return written
    return written.replace(inner, f"{ISOLATE}{inner}{END_OF_ISOLATE}", 1)


def within(piece: str) -> str:
    r"""Return a token within its text: as `shown`, but not isolated.

    Isolated one by one, the words of a text that runs from the right would change their order.
    The whole line is isolated instead.

    Examples
    --------
    >>> within(" \u05d0\u05d1") == " \u05d0\u05d1", within("a\tb")
    (True, 'a⇥b')
    """
    written = "".join(_visible(piece, i) for i in range(len(piece)))
    inner = written.strip(" ")
    if inner and unicodedata.category(inner[0]) in _COMBINING:
        written = written.replace(inner[0], f"\N{DOTTED CIRCLE}{inner[0]}", 1)
    return written


def runs_from_the_right(text: str) -> bool:
    """Return whether any character of a text runs from right to left.

    Examples
    --------
    >>> runs_from_the_right("a word"), runs_from_the_right("a \u05d0")
    (False, True)
    """
    return any(unicodedata.bidirectional(c) in _FROM_THE_RIGHT for c in text)


def _visible(piece: str, i: int) -> str:
    character = piece[i]
    if character in _SYMBOLS:
        return _SYMBOLS[character]
    if character < " ":
        return chr(_PICTURES + ord(character))
    if character in JOINERS and _joins(piece, i):
        return character
    return escaped(character)


def _joins(piece: str, i: int) -> bool:
    """Return whether the characters on both sides are such that a joiner changes their form."""
    sides = piece[i - 1 : i] + piece[i + 1 : i + 2]
    return len(sides) == 2 and all(
        c > "\x7f" and unicodedata.category(c)[0] in "LMS" for c in sides
    )


def in_words(piece: str) -> str:
    r"""Return a token as a name: a mark or a space in words, a word as it is.

    Spaces around a word are left out. A token that holds a letter or a digit is a word, and so
    are special tokens such as ``<|eos|>`` and bytes such as ``<0xE2>``. Marks and spaces get the
    name that people use, else that of Unicode's database; the same one several times is counted.
    A token of more than three different runs of marks stays as it is.

    Examples
    --------
    >>> in_words(" the"), in_words(","), in_words('("'), in_words("    ")
    ('the', 'comma', 'open parenthesis + double quote', 'space × 4')
    >>> in_words("\n"), in_words(">>>"), in_words("<|eos|>")
    ('new line', 'greater-than sign × 3', '<|eos|>')
    """
    text = piece if piece.isspace() else piece.strip(" ")
    if any(character.isalnum() for character in text):
        return text
    runs = [(mark, len(list(same))) for mark, same in itertools.groupby(text)]
    if len(runs) > _RUNS_NAMED:
        return text
    return " + ".join(f"{_name(m)} × {n}" if n > 1 else _name(m) for m, n in runs)


def _name(mark: str) -> str:
    """Return what one mark is called."""
    if mark in _NAMES:
        return _NAMES[mark]
    name = unicodedata.name(mark, f"U+{ord(mark):04X}")
    if name.startswith("U+"):
        return name
    if bracket := _BRACKET.match(name.lower()):
        return f"{'open' if bracket[1] == 'left' else 'close'} {bracket[2]}"
    return name.lower()
