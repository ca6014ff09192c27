"""Word streams: text, words or token ids as one array of numbers, with the names of the numbers.

A negative number in a stream ends the context: nothing is counted across it.
One stands between two texts.
"""

from __future__ import annotations

import itertools
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ontogeny.arrays import is_array, to_numpy
from ontogeny.errors import (
    ArgumentError,
    check_choice,
    check_flag,
    check_iterable,
    check_texts,
)
from ontogeny.features.wordspace.counting import highest_id
from ontogeny.features.wordspace.support import WordStream

# Cutting text into words.

# One word is a special token such as <unk>, WikiText's @-@, one CJK character, a run of anything
# but spaces and punctuation (so that the marks of Indic and Semitic scripts stay in their words,
# which \w would cut out), apostrophes inside it included; or one punctuation mark.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_MARKS = (
    r"!-/:-@\[-`{-~\u00a1-\u00bf\u00d7\u00f7\u05be\u05c0\u05c3\u060c\u061b\u061f\u06d4\u0964\u0965"
    r"\u2000-\u200b\u200e-\u206f\u20a0-\u20cf\u2190-\u2bff\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
)
_LETTERS = rf"[^\s{_MARKS}{_CJK}]+"
_WORD = re.compile(
    rf"</?\w+>|<\|\w+\|>|@[-,.]@|[{_CJK}]|{_LETTERS}(?:['’]{_LETTERS})*|[^\s]"
)
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


# A WordStream, integer array(s), a text, a path, words, or lists of words.
Tokens: TypeAlias = Any

BREAK = -1
_NOTHING = object()  # the first entry where there is none

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")


def word_stream(
    texts: str | Path | Iterable[Any],
    *,
    split: str | Callable[[str], Any] = "words",
    lowercase: bool = True,
    punctuation: bool = True,
    field: str = "text",
) -> WordStream:
    r"""Turn texts into one stream of word numbers; no context crosses the end of a text.

    Texts are read one after the other and only their numbers are kept, so that a generator or a
    streamed data set may be larger than memory allows text to be.

    Parameters
    ----------
    texts
        One text; the path of a text file, whose texts are separated by blank lines; or any iterable
        of texts or of rows with a text in `field` (a ``datasets`` data set).
    split
        ``"words"`` and punctuation marks, ``"spaces"`` for tokenised text such as
        WikiText, or a function from a text to a list of words. A Hugging Face tokenizer
        is used by its tokens, without special ones.
    lowercase, punctuation
        Whether capitals become small letters, and whether punctuation marks are words. They are
        not used where `split` is a function.
    field
        Key of the text in a row.

    Raises
    ------
    ArgumentError
        If a text is not a string or `split` is not known.

    Examples
    --------
    >>> stream = word_stream(["A cat sat.", "The cat ran!"], punctuation=False)
    >>> stream.ids.tolist(), stream.words
    ([0, 1, 2, -1, 3, 1, 4], ('a', 'cat', 'sat', 'the', 'ran'))
    """
    cut = splitter(split, lowercase, punctuation)
    return _numbered(cut(text) for text in _texts(texts, field))


def token_stream(tokens: Tokens, names: Sequence[str] | None = None) -> WordStream:
    """Turn anything that :func:`~ontogeny.semantics.support_matrix` takes into a word stream.

    Parameters
    ----------
    tokens
        A `WordStream`; a text or the path of a text file (:func:`word_stream` with its defaults);
        an integer array of shape (n,), or (texts, n) one text a row; a list of words; or
        any iterable of such arrays or of lists of words, one for each text. Negative ids end the
        context.
    names
        The word of each id, where ids are given; by default the id itself.

    Raises
    ------
    ArgumentError
        If `tokens` is none of these, or a list of "words" holds whole texts.

    Examples
    --------
    >>> token_stream([["a", "b"], ["b", "c"]]).ids.tolist()
    [0, 1, -1, 1, 2]
    >>> token_stream([5, 7, 5]).words[7]
    '7'
    """
    names = None if names is None else check_texts("names", names, "words")
    if isinstance(tokens, WordStream):
        return tokens
    if isinstance(tokens, str | Path):
        return word_stream(tokens)
    if is_array(tokens):
        return _of_ids(_joined([tokens] if tokens.ndim <= 1 else list(tokens)), names)
    rest = check_iterable("tokens", tokens, "words or token ids, or a text")
    first = next(rest, _NOTHING)
    rest = rest if first is _NOTHING else itertools.chain([first], rest)
    if isinstance(first, int | np.integer):
        return _of_ids(_joined([np.asarray(list(rest))]), names)
    if isinstance(first, str):
        return _of_words(list(rest))
    if is_array(first) or _holds_numbers(first):
        return _of_ids(_joined(rest), names)
    # What a first text without tokens is not.
    if isinstance(first, Sequence) and not len(first):
        texts = (text for text in rest if not isinstance(text, Sequence) or len(text))
        return token_stream(texts, names)
    if isinstance(first, Sequence) or first is _NOTHING:
        return _numbered(_checked_words(words) for words in rest)
    raise ArgumentError(
        f"tokens must hold words, token ids or lists of them; its first entry is {_kind(first)}."
    )


def _texts(texts: Any, field: str) -> Iterator[str]:
    if isinstance(texts, str):
        yield texts
        return
    if isinstance(texts, Path):
        try:
            yield from _BLANK_LINE.split(texts.read_text("utf-8-sig"))
        except OSError as error:
            raise ArgumentError(f"{texts} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError as error:
            raise ArgumentError(
                f"{texts} is not UTF-8 text: byte {error.start}."
            ) from None
        return
    some = False
    for i, row in enumerate(
        check_iterable("texts", texts, "texts, one text or a path")
    ):
        text = row.get(field) if isinstance(row, Mapping) else row
        if not isinstance(text, str):
            raise ArgumentError(
                f"texts: entry {i} must be a string; it is {_kind(text)}."
            )
        yield text
        some = True
    if not some:
        raise ArgumentError(
            "texts must hold a text; they are empty, or were all read before."
        )


def _numbered(texts: Iterable[list[str]]) -> WordStream:
    """Give the words of all texts numbers in the order in which they are met."""
    # A word that is new gets the number of those before it.
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__
    ids = array("i")
    for words in texts:
        ids.extend(map(index.__getitem__, words))
        ids.append(BREAK)
    return WordStream(np.frombuffer(ids, dtype=np.int32)[:-1], tuple(index))


def _of_words(words: list[str]) -> WordStream:
    stream = _numbered([_checked_words(words)])
    for word in stream.words:
        if len(word.split()) > 1:
            raise ArgumentError(
                f"tokens: a list of strings is a list of words, but {word[:60]!r} holds several; "
                "for texts pass word_stream(texts)."
            )
    return stream


def _checked_words(words: Any) -> list[str]:
    if isinstance(words, str) or not isinstance(words, Sequence):
        raise ArgumentError(
            f"tokens must hold lists of words; one entry is {_kind(words)}."
        )
    for word in words:
        if not isinstance(word, str):
            raise ArgumentError(
                f"tokens must hold words; one of them is {_kind(word)}."
            )
    return list(words)


def _joined(rows: Iterable[Any]) -> np.ndarray:
    parts: list[np.ndarray] = []
    for row in rows:
        ids = to_numpy(row) if is_array(row) else np.asarray(row)
        if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
            raise ArgumentError(
                "tokens must be integer ids in one dimension a text; "
                f"got {ids.dtype} of shape {ids.shape}."
            )
        # Joins to floats otherwise.
        ids = ids.astype(np.int64) if ids.dtype == np.uint64 else ids
        parts += [ids, np.array([BREAK], dtype=np.int8)]
    return (
        parts[0]
        if len(parts) == 2
        else np.concatenate([*parts[:-1], np.zeros(0, np.int8)])
    )


def _of_ids(ids: np.ndarray, names: Sequence[str] | None) -> WordStream:
    highest = highest_id(ids)
    if names is None:
        return WordStream(ids, _Numbers(highest + 1))
    if highest >= len(names):
        raise ArgumentError(
            f"tokens hold id {highest}, but names holds {len(names)} words."
        )
    return WordStream(ids, names)


class _Numbers(Sequence[str]):
    """The decimal names of 0 .. n - 1, made when asked for."""

    def __init__(self, n: int) -> None:
        self._range = range(n)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, i: Any) -> Any:
        numbers = self._range[i]
        return str(numbers) if isinstance(numbers, int) else tuple(map(str, numbers))

    def __contains__(self, word: object) -> bool:
        name = str(word)
        return name.isdecimal() and str(int(name)) == word and int(name) in self._range


def _holds_numbers(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) > 0
        and isinstance(value[0], int | np.integer)
        and not isinstance(value, str | bytes)
    )


def _kind(value: object) -> str:
    return type(value).__name__
