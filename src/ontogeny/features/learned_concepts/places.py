"""What can be said of a place in a text: its word, the words beside it, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...characters import is_letter, whole_characters
from ...inputs import Inputs, ShownTexts
from ...inputs.sampling import TokenSample
from .letters import begins_alone, has_digit, has_picture, is_punctuation

ATTRIBUTES = {"word": (0,), "after": (-1,), "before": (1,), "soon after": (-1, -2, -3)}
"""Whose word a rule is about: that of the place, the one before it, the one after it, or one of the
last three."""

REST = "word that goes on with"  # of a rule about the pieces that are still to come

PLACE = "place"  # of a rule that is about no word

CLASSES = {
    "article": "a an the",
    "pronoun": "i you he she it we they me him her us them myself himself herself itself",
    "possessive": "my your his her its our their mine yours hers ours theirs",
    "preposition": "of in to for with on at from by about into over after under before between "
    "through during without around near behind inside outside onto upon across along against",
    "conjunction": "and or but nor so yet because although while if when unless until since than",
    "auxiliary": "am is are was were be been being have has had having do does did",
    "modal": "will would can could may might must shall should",
    "negation": "not no never nothing nobody none neither nor without cannot n't",
    "question word": "who whom whose what which when where why how",
    "demonstrative": "this that these those",
    "quantity": "all some any many much few little more most several both each every one two three "
    "four five six seven eight nine ten first second third half",
    "sentence end": ". ! ? .\" !\" ?\" .' !' ?' 。 ！ ？ । ؟",
    "comma or colon": ", ; : ,\" ,' 、 ， ； ： ، ؛",
    "quotation mark": "\" “ ” ' ‘ ’ `` '' „ « » 「 」",
    "bracket": "( ) [ ] { } （ ）",
}
SUFFIXES = "ing ed ly er est tion ness ful less ment ity ous able al en s 's"
# What follows an apostrophe within a word: the names of rules keep both together.
CLITICS = {"s", "t", "d", "m", "ll", "re", "ve"}
# Both of a pair, whichever opens: „one“, “one”, «one», »one«.
QUOTES = ('"', "“", "”", "„", "«", "»", "「", "」")
_ENDS = re.compile(r"[.!?。！？।؟]")
_OPENED = re.compile(r"[(\[{（]")
_CLOSED = re.compile(r"[)\]}）]")


class Rule(NamedTuple):
    """Something that holds at some places: what it is about, what it is called, and where."""

    about: str
    label: str
    holds: np.ndarray


class Places:
    """The rows of a sample, with the words of their texts.

    Parameters
    ----------
    inputs, sample
        The texts, and which of their tokens the rows are.
    pieces
        How each id is written.
    """

    def __init__(
        self, inputs: Inputs, sample: TokenSample, pieces: Sequence[str]
    ) -> None:
        self.inputs = inputs
        self.sample = sample
        self._pieces = pieces
        # Ids alone, or words without marks of spaces: nothing joins them.
        self._spaced = any(
            piece[:1].isspace() or piece[-1:].isspace() for piece in pieces
        )
        self.names: list[str] = [""]  # of the words, by number
        self._number: dict[str, int] = {"": 0}
        shape = inputs.ids.shape
        self._order = np.zeros(shape, dtype=np.int64)  # which word of the text that is
        self._rest = np.zeros(shape, dtype=np.int64)  # of its word, behind the token
        self._flags = np.zeros((len(FLAGS), *shape), dtype=bool)
        lines = [self._read(text) for text in range(len(inputs))]
        # (texts, words) numbers; 0 behind the last word.
        self._words = np.zeros((len(lines), max(map(len, lines))), dtype=np.int64)
        for row, line in zip(self._words, lines, strict=True):
            row[: len(line)] = line

    def words(self, offset: int) -> np.ndarray:
        """Return (n,) the number of the word `offset` words after each row's; 0 beyond a text."""
        text = self.sample.text
        order = self._order[text, self._column] + offset
        inside = (order >= 0) & (order < self._words.shape[1])
        return np.where(inside, self._words[text, np.where(inside, order, 0)], 0)

    def listed(self, attribute: str) -> np.ndarray:
        """Return (k, n) the numbers of what a rule about an attribute lists, k of each row."""
        if attribute == REST:
            return self._rest[self.sample.text, self._column][None]
        return np.stack([self.words(offset) for offset in ATTRIBUTES[attribute]])

    def rules(self) -> Iterator[Rule]:
        """Give what needs no list of words of its own: classes, suffixes, and where a place is."""
        lower = np.array([name.lower() for name in self.names], dtype=object)
        kinds = {n: np.isin(lower, listed.split()) for n, listed in CLASSES.items()}
        for suffix in SUFFIXES.split():
            ends = [len(n) > len(suffix) + 2 and n.endswith(suffix) for n in lower]
            kinds[f"in -{suffix}"] = np.array(ends)
        for label, test in FORMS.items():
            kinds[label] = np.array([*map(test, self.names)])
        for attribute in ATTRIBUTES:
            numbers = self.listed(attribute)
            for label, is_kind in kinds.items():
                holds = is_kind[numbers].any(axis=0)
                yield Rule(attribute, f"{attribute} {label}", holds)
        for label, flags in zip(FLAGS, self._flags, strict=True):
            yield Rule(PLACE, label, flags[self.sample.text, self._column])

    def ids(self, rows: np.ndarray, around: tuple[int, int]) -> np.ndarray:
        """Return (rows, places) the ids around some rows; -1 beyond the text.

        Words that the window would cut are left out, but for the row's own.
        """
        low, high = around
        order = self._around(self._order, rows, (low - 1, high + 1))
        is_cut = (order == order[:, :1]) | (order == order[:, -1:])
        is_cut &= order != order[:, 1 - low, None]
        ids = self._around(self.inputs.ids, rows, around)
        return np.where(is_cut[:, 1:-1], -1, ids)

    def rows(self, rows: np.ndarray, around: tuple[int, int]) -> np.ndarray:
        """Return (rows, places) which rows are around some rows; -1 where none was sampled."""
        return self._around(self._row, rows, around)

    def rows_of(self, texts: ShownTexts) -> np.ndarray:
        """Return (k, w) which row each token that is shown is; -1 where none was sampled."""
        place = np.arange(texts.ids.shape[1])
        inside = place < self.inputs.lengths[texts.number][:, None]
        column = self._first[texts.number][:, None] + np.where(inside, place, 0)
        return np.where(inside, self._row[texts.number[:, None], column], -1)

    def _around(
        self, values: np.ndarray, rows: np.ndarray, around: tuple[int, int]
    ) -> np.ndarray:
        text = self.sample.text[rows][:, None]
        place = self.sample.position[rows][:, None] + np.arange(
            around[0], around[1] + 1
        )
        inside = (place >= 0) & (place < self.inputs.lengths[text])
        column = self._first[text] + np.where(inside, place, 0)
        return np.where(inside, values[text, column], -1)

    @cached_property
    def _row(self) -> np.ndarray:
        """Which row a token of a text is; -1 of those that were not sampled."""
        row = np.full(self.inputs.ids.shape, -1)
        row[self.sample.text, self._column] = np.arange(len(self._column))
        return row

    @cached_property
    def _first(self) -> np.ndarray:
        return np.asarray(self.inputs.mask.argmax(axis=1))

    @cached_property
    def _column(self) -> np.ndarray:
        return self._first[self.sample.text] + self.sample.position

    def _piece(self, token: int) -> str:
        return self._pieces[token] if token < len(self._pieces) else str(token)

    def _read(self, text: int) -> list[int]:
        """Join the pieces of a text to words, and note what is known of each of its tokens.

        Return the numbers of the words.
        """
        columns = np.flatnonzero(self.inputs.mask[text])
        ids = self.inputs.ids[text, columns].tolist()
        special = self.inputs.special[text, columns].tolist()
        pieces = [
            "" if s else self._piece(i) for i, s in zip(ids, special, strict=True)
        ]
        pieces, inside = whole_characters(pieces)
        starts = _starts(pieces, inside, self._spaced)
        order = (np.cumsum(starts) - 1).tolist()
        joined = [""] * (order[-1] + 1)
        for i, piece in zip(order, pieces, strict=True):
            joined[i] += piece
        words = [word.strip() for word in _with_apostrophes(joined)]
        self._order[text, columns] = order
        self._rest[text, columns] = [
            self._known(rest) for rest in _rests(pieces, order)
        ]
        self._flags[:, text, columns] = _flags(pieces, starts, order, words)
        return [self._known(word) for word in words]

    def _known(self, word: str) -> int:
        if word not in self._number:
            self._number[word] = len(self.names)
            self.names.append(word)
        return self._number[word]


def _with_apostrophes(words: list[str]) -> list[str]:
    """Return words, as they stand between others, with the apostrophe of an ending.

    Examples
    --------
    >>> _with_apostrophes(["don", "'", "t", " say", " '", "Yes", "'"])
    ['don', "'", "'t", ' say', " '", 'Yes', "'"]

    Word pieces do not tell whether a space stands after a mark.

    >>> _with_apostrophes([" DON", "'", " T"])
    [' DON', "'", "'T"]
    """
    before = ["", *words[:-1]]
    endings = [word.strip() for word in words]
    return [
        f"{one}{end}" if one in ("'", "’") and end.lower() in CLITICS else word
        for one, word, end in zip(before, words, endings, strict=True)
    ]


def _rests(pieces: list[str], order: list[int]) -> list[str]:
    """Return what of its word is behind each piece; `order` is which word each belongs to.

    Examples
    --------
    >>> _rests([" wh", "al", "ing", " ship"], [0, 0, 0, 1])
    ['aling', 'ing', '', '']
    """
    rests = [""] * len(pieces)
    for i in range(len(pieces) - 2, -1, -1):
        if order[i] == order[i + 1]:
            rests[i] = pieces[i + 1] + rests[i + 1]
    return rests


def _starts(pieces: list[str], inside: list[bool], spaced: bool) -> list[bool]:
    """Return which pieces begin a word; none does `inside` of a character."""
    starts = []
    before = ""
    for piece, is_inside in zip(pieces, inside, strict=True):
        starts.append(not is_inside and (not spaced or _begins(before, piece)))
        if not is_inside:
            before = piece
    return starts


def _begins(before: str, piece: str) -> bool:
    """Return whether a piece begins a word after another one."""
    if not before or not piece or piece[0].isspace() or before[-1].isspace():
        return True
    if begins_alone(piece[0]):
        return True
    return is_letter(before[-1]) != is_letter(piece[0])


FLAGS = (
    "first token of the text",
    "first four tokens of the text",
    "inside quotation marks",
    "inside brackets",
    "later piece of a word",
    "first piece of a word",
    "last piece of a word",
    "first word of a sentence",
    "word that has occurred before",
    "word that has just occurred",
    "after a word that has occurred before",
)
FORMS: dict[str, Callable[[str], bool]] = {
    "with a capital": lambda word: word[:1].isupper(),
    "in capitals": lambda word: len(word) > 1 and word.isupper(),
    "with a digit": has_digit,
    "of punctuation": is_punctuation,
    "with a picture": has_picture,
}


def _flags(
    pieces: list[str], starts: list[bool], order: list[int], words: list[str]
) -> np.ndarray:
    """Return (flags, tokens) what holds of each token of a text, in the order of `FLAGS`."""
    place = np.arange(len(pieces))
    quotes = np.cumsum([sum(map(piece.count, QUOTES)) for piece in pieces])
    depth = np.cumsum(
        [len(_OPENED.findall(p)) - len(_CLOSED.findall(p)) for p in pieces]
    )
    # What was never opened closes none.
    depth = depth - np.minimum.accumulate(np.minimum(depth, 0))
    has_several = np.bincount(order)[order] > 1
    ends = np.append(starts[1:], True)
    inside = [np.concatenate([[0], values[:-1]]) for values in (quotes % 2, depth)]
    of_words = np.array(list(_of_words(words)), dtype=bool)[order].T
    own = [place == 0, place < 4, inside[0] == 1, inside[1] > 0]
    own += [np.logical_not(starts), starts & has_several, ends & has_several]
    return np.concatenate([np.array(own), of_words])


def _of_words(words: list[str]) -> Iterator[tuple[bool, bool, bool, bool]]:
    """Give for each word: first of a sentence, seen before, just seen, the last one seen before."""
    seen: set[str] = set()
    begins = True
    last_known = False
    for i, word in enumerate(words):
        is_word = any(map(is_letter, word))
        known = is_word and word in seen
        yield (
            begins and is_word,
            known,
            known and word in words[max(i - 3, 0) : i],
            last_known,
        )
        begins = (begins and not is_word) or bool(_ENDS.search(word))
        last_known = known
        seen.add(word)
