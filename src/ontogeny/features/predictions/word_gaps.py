"""Gaps of whole words where each token is a character, and the likeliest words to stand there.

A word is spelled out, one character after the other: its probability is the product of theirs, and
of any character that ends it. Looked for are the likeliest beginnings, eight at each length, and
the right word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from ...inputs import Inputs
from ...inputs.sampling import generator
from ...observables.pieces import PIECES
from .choice import drawn
from .gaps import Gaps

LONGEST = 20  # letters of a word
_BEGINNINGS = 8
_BEFORE = 16  # characters before a gap
_NONE = -1
_WORD = re.compile(r"(?<!\S)[^\W\d_]+(?![\w'’(-])")
_GOES_ON = "_'’-("  # neither letters nor ends of a word

Letters = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Words:
    """Words that stand free in texts of characters.

    Attributes
    ----------
    text, position
        (w,) the text of each, and its first token, counted from the text's first.
    width
        (w,) how many characters it has.
    key
        (w,) the same number for the same word.
    letters
        (keys, 20) the ids of each word, -1 behind it.
    """

    text: np.ndarray
    position: np.ndarray
    width: np.ndarray
    key: np.ndarray
    letters: np.ndarray

    @classmethod
    def of(cls, inputs: Inputs) -> Words:
        """Return the words whose characters are all scored and whose end is in the text."""
        assert inputs.spans is not None and inputs.texts is not None
        inputs = inputs.padded("right")
        places = [
            (row, *place)
            for row in range(len(inputs))
            for place in _in_text(inputs, row)
        ]
        text, position, width = np.array(places, dtype=np.int64).reshape(-1, 3).T
        letters = np.full((len(text), LONGEST), _NONE)
        for row, (i, start, size) in zip(letters, places, strict=True):
            row[:size] = inputs.ids[i, start : start + size]
        distinct, key = np.unique(letters, axis=0, return_inverse=True)
        return cls(text, position, width, key.reshape(-1), distinct)

    def elsewhere(
        self, units: np.ndarray, right: np.ndarray, left_out: np.ndarray
    ) -> dict[str, Any]:
        """Return the share of words among those of other units, and their most frequent one.

        Parameters
        ----------
        units
            The unit of each text.
        right
            (g, 20) letters of words.
        left_out
            (g,) the unit that each is not counted in.
        """
        share = np.full(len(right), np.nan)
        most = np.full_like(right, _NONE)
        its = np.full(len(right), np.nan)
        for g, (letters, unit) in enumerate(zip(right, left_out, strict=True)):
            keys = self.key[units[self.text] != unit]
            if len(keys):
                counts = np.bincount(keys, minlength=len(self.letters))
                most[g] = self.letters[counts.argmax()]
                its[g] = counts.max() / len(keys)
                same = (self.letters == letters).all(axis=1)
                share[g] = counts[same].sum() / len(keys)
        share[(right == _NONE).all(axis=1)] = np.nan
        return {
            "frequency": ("gap", share),
            "frequent_letter": (("gap", "letter"), most),
            "frequent_share": ("gap", its),
        }


def _in_text(inputs: Inputs, row: int) -> Iterable[tuple[int, int]]:
    """Give the first token and the width of each word of a text."""
    assert inputs.spans is not None and inputs.texts is not None
    scored = np.flatnonzero(inputs.scored[row])
    starts = inputs.spans[row, scored, 0]
    shown_to = int(inputs.spans[row, inputs.ordinary[row], 1].max())
    for word in _WORD.finditer(inputs.texts[row][:shown_to]):
        size = word.end() - word.start()
        there = scored[(starts >= word.start()) & (starts < word.end())]
        if size <= LONGEST and word.end() < shown_to and len(there) == size:
            yield int(there[0]), size


def choose_words(
    inputs: Inputs, words: Words, n_gaps: int, random_state: int = 0
) -> np.ndarray:
    """Return which words are left out, as `choose_gaps` chooses tokens; the most frequent first.

    Words with 16 characters before them, and room for twenty more, come first, of those the ones
    that other texts hold too.
    """
    order = generator(random_state).permutation(np.flatnonzero(words.position > 0))
    position = words.position[order]
    key = words.key[order]
    unit = inputs.groups[words.text[order]]
    pairs = np.unique(np.stack([key, unit]), axis=1)
    elsewhere = np.bincount(pairs[0], minlength=len(words.letters)) > 1
    has_room = position + LONGEST < inputs.ids.shape[1]
    context = (position >= _BEFORE) & has_room
    conditions = [
        elsewhere[key] & context,
        context,
        elsewhere[key],
        np.ones(len(key), dtype=bool),
    ]
    at = drawn(key, unit, ((allowed, None) for allowed in conditions), n_gaps)
    often = np.bincount(words.key)[key[at]]
    return order[at[np.argsort(-often, kind="stable")]]


def letters_of(gaps: Gaps) -> np.ndarray:
    """Return the letters (g, 20 or more) of the right answers, -1 behind them."""
    ids = gaps.inputs.padded("right").ids
    letters = np.full((len(gaps), max(LONGEST, int(gaps.width.max()))), _NONE)
    for g in np.flatnonzero(gaps.right_id >= 0):
        start = int(gaps.position[g])
        letters[g, : gaps.width[g]] = ids[g, start : start + gaps.width[g]]
    return letters


Ask = Callable[..., xr.Dataset]


def likeliest_words(
    ask: Ask, gaps: Gaps, right: np.ndarray, pieces: Sequence[str], top: int, room: int
) -> dict[str, np.ndarray]:
    """Return the likeliest words at gaps, and how likely the right one is.

    Parameters
    ----------
    ask
        What gives the answers of a causal model at tokens, as `ontogeny.capture.Predictor.at`.
    gaps
        The gaps, with nothing behind their first token.
    right
        (g, w) letters of the right words, -1 behind them.
    pieces
        How each id is written.
    top
        How many words are kept.
    room
        Tokens that a text may have.

    Returns
    -------
    dict
        ``answer_letter`` (g, top, w), ``answer_log_probability`` (g, top),
        ``right_log_probability`` (g,) and ``right_rank`` (g,) among the words that were looked at.
    """
    speller = _Speller(ask, gaps, pieces)
    known = [tuple(row[row >= 0].tolist()) for row in right]
    found = speller.words(max(top, _BEGINNINGS), room, right.shape[1])
    costs = speller.log_probability(known)
    letters = np.full((len(gaps), top, right.shape[1]), _NONE)
    chances = np.full((len(gaps), top), -np.inf)
    rank = np.ones(len(gaps), dtype=np.int64)
    for g, word in enumerate(known):
        others = {w: p for w, p in found[g].items() if w != word}
        rank[g] += sum(p > costs[g] for p in others.values())
        whole = others | ({word: costs[g]} if word else {})
        best = sorted(whole, key=lambda w: (-whole[w], w))[:top]
        for place, one in enumerate(best):
            letters[g, place, : len(one)] = one
            chances[g, place] = whole[one]
    return {
        "answer_letter": letters,
        "answer_log_probability": chances,
        "right_log_probability": costs,
        "right_rank": rank,
    }


class _Speller:
    """Asks a model for the next character behind beginnings of words in gaps."""

    def __init__(self, ask: Ask, gaps: Gaps, pieces: Sequence[str]) -> None:
        self._ask = ask
        ids = gaps.inputs.padded("right").ids
        self._before = [
            row[:at] for row, at in zip(ids, gaps.position.tolist(), strict=True)
        ]
        asked = ask(gaps.inputs, np.arange(len(gaps)), gaps.position)
        self._size = int(asked.attrs["vocabulary"])
        kinds = np.array([_kind(piece) for piece in pieces[: self._size]])
        self._letters = np.flatnonzero(kinds == "letter")
        # What the vocabulary is padded with is no character.
        self._ends = np.flatnonzero(kinds == "end")

    def words(self, width: int, room: int, longest: int) -> list[dict[Letters, float]]:
        """Return for each gap the words that were found, with their log probabilities."""
        found: list[dict[Letters, float]] = [{} for _ in self._before]
        live: list[dict[Letters, float]] = [{(): 0.0} for _ in self._before]
        for size in range(longest + 1):
            at = [(g, start) for g, starts in enumerate(live) for start in starts]
            if not at:
                break
            following = self._following(at)
            ended = logsumexp(following[:, self._ends], axis=1)
            longer: list[dict[Letters, float]] = [{} for _ in live]
            for (g, start), next_one, end in zip(at, following, ended, strict=True):
                so_far = live[g][start]
                if start:
                    found[g][start] = so_far + float(end)
                if size < longest and len(self._before[g]) + size + 2 <= room:
                    for one in self._letters.tolist():
                        longer[g][*start, one] = so_far + float(next_one[one])
            live = [_best(starts, width, found[g]) for g, starts in enumerate(longer)]
        return found

    def log_probability(self, words: Sequence[Letters]) -> np.ndarray:
        """Return the log probability of one word in each gap, NaN of none."""
        at = [
            (g, word[:size])
            for g, word in enumerate(words)
            if word
            for size in range(len(word) + 1)
        ]
        result = np.full(len(words), np.nan)
        if not at:
            return result
        following = self._following(at)
        result[[g for g, word in enumerate(words) if word]] = 0.0
        for (g, start), next_one in zip(at, following, strict=True):
            rest = words[g][len(start) :]
            result[g] += next_one[rest[0]] if rest else logsumexp(next_one[self._ends])
        return result

    def _following(self, at: Sequence[tuple[int, Letters]]) -> np.ndarray:
        """Return the log probability (n, V) of each character behind a gap's beginnings."""
        rows = [[*self._before[g].tolist(), *start, 0] for g, start in at]
        last = np.array([len(row) - 1 for row in rows])
        inputs = Inputs.from_tokens(rows)
        asked = self._ask(inputs, np.arange(len(rows)), last, top=self._size)
        result = np.empty((len(rows), self._size))
        chance = asked.answer_log_probability.values
        np.put_along_axis(result, asked.answer_id.values, chance, axis=1)
        return result


def _kind(piece: str) -> str:
    if piece.isalpha():
        return "letter"
    return "" if piece.isalnum() or piece in _GOES_ON else "end"


def _best(
    starts: dict[Letters, float], count: int, found: dict[Letters, float]
) -> dict[Letters, float]:
    """Return the likeliest beginnings that can still become one of the likeliest words."""
    least = sorted(found.values(), reverse=True)[count - 1 : count] or [-np.inf]
    chosen = sorted(starts, key=lambda start: (-starts[start], start))[:count]
    return {start: starts[start] for start in chosen if starts[start] > least[0]}


def with_words(data: xr.Dataset) -> xr.Dataset:
    """Return data whose answers are words: their numbers, and how each is written.

    Letters become ``answer_id``, ``right_id`` and ``frequent_id``, whose texts are those of
    ``piece_text``, as those of tokens are.
    """
    pieces = [str(piece) for piece in data[PIECES].values]
    written = {
        name: _joined(data[f"{name}_letter"], pieces)
        for name in ("answer", "right", "frequent")
    }
    every = sorted(
        {word for words in written.values() for word in words.ravel()} - {""}
    )
    number = {word: i for i, word in enumerate(every)} | {"": _NONE}
    for name, words in written.items():
        dims = [dim for dim in data[f"{name}_letter"].dims if dim != "letter"]
        ids = np.array([number[word] for word in words.ravel()], dtype=np.int64)
        data = data.assign({f"{name}_id": (dims, ids.reshape(words.shape))})
    data = data.drop_vars([PIECES, *(f"{name}_letter" for name in written)])
    data = data.assign_coords(piece=np.arange(len(every)))
    return data.assign(piece_text=("piece", np.array(every, dtype=str)))


def _joined(letters: xr.DataArray, pieces: Sequence[str]) -> np.ndarray:
    """Return the words that letters (..., letter) spell; empty where there are none."""
    ids = letters.transpose(..., "letter").fillna(_NONE).values.astype(np.int64)
    flat = [
        "".join(pieces[i] for i in row if i >= 0)
        for row in ids.reshape(-1, ids.shape[-1])
    ]
    return np.array(flat, dtype=object).reshape(ids.shape[:-1])
