"""The word that each token belongs to: pieces joined as they are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....inputs import Inputs
from ....inputs.sampling import TokenSample

# Share of the rows of a piece in one word, from which on it is called by it.
ONE_WORD = 0.9
NONE = -1  # the word of a token of spaces, and of a row that is the mean of a text
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]|\n")


@dataclass(frozen=True, eq=False)
class RowWords:
    """Words (k,) in their order, and which of them each sampled token is part of, (n,)."""

    words: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, inputs: Inputs, sample: TokenSample, pieces: Sequence[str]) -> RowWords:
        """Return the words of the tokens of `sample`.

        Examples
        --------
        >>> inputs = Inputs.from_tokens([[0, 1, 2, 3]])
        >>> row_words = RowWords.of(inputs, inputs.sample(), [" Tim", "my", ",", "  "])
        >>> row_words.words.tolist(), row_words.place.tolist()
        ([',', 'Timmy'], [1, 1, 0, -1])
        """
        words_of_rows = np.full(len(sample), "", dtype=object)
        for text in np.unique(sample.text).tolist():
            rows = np.flatnonzero((sample.text == text) & (sample.position >= 0))
            written = written_tokens(inputs, text, pieces)
            ends = np.cumsum([len(piece) for piece in written])
            matches = list(_WORD.finditer("".join(written)))
            stops = np.array([match.end() for match in matches], dtype=int)
            for row, position in zip(rows, sample.position[rows], strict=True):
                start = ends[position] - len(written[position])
                first = int(np.searchsorted(stops, start, side="right"))
                if first < len(matches) and matches[first].start() < ends[position]:
                    words_of_rows[row] = matches[first].group()
        words, place = np.unique(words_of_rows.astype(str), return_inverse=True)
        if len(words) and words[0] == "":
            words = words[1:]
            place = place - 1
        return cls(words, place)


def word_at(written: Sequence[str], token: int) -> str:
    """Return the word that a token is part of, of tokens one after the other; empty of spaces.

    Examples
    --------
    >>> word_at([" Tim", "my", "."], 1), word_at([" Tim", "my", " "], 2)
    ('Timmy', '')
    """
    start = sum(map(len, written[:token]))
    stop = start + len(written[token])
    matches = _WORD.finditer("".join(written))
    return next(
        (m.group() for m in matches if m.end() > start and m.start() < stop), ""
    )


def joined_pieces(rows: RowWords, ids: np.ndarray, pieces: Sequence[str]) -> list[str]:
    """Return how tokens are called: a piece of one word by that word, of several ones as cut.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[0, 1, 2, 0, 3]])
    >>> pieces = [" Tim", "my", ",", "es"]
    >>> words = RowWords.of(inputs, inputs.sample(), pieces)
    >>> joined_pieces(words, inputs.ids.ravel(), pieces)
    ['Tim…', 'Timmy', ',', 'Times']
    """
    joined = list(pieces)
    has_word = rows.place != NONE
    for i in np.unique(ids[has_word & (ids >= 0) & (ids < len(pieces))]).tolist():
        piece = pieces[i].strip()
        places, counts = np.unique(
            rows.place[has_word & (ids == i)], return_counts=True
        )
        word = str(rows.words[places[counts.argmax()]])
        if not piece.isalnum() or (len(places) == 1 and word == piece):
            continue
        if counts.max() >= ONE_WORD * counts.sum():
            joined[i] = word
        elif all(str(rows.words[place]).startswith(piece) for place in places):
            joined[i] = f"{piece}…"
        else:
            joined[i] = f"…{piece}"
    return joined


def written_tokens(inputs: Inputs, text: int, pieces: Sequence[str]) -> list[str]:
    """Return how each token of a text is written, special ones not at all; ids a space apart."""
    mask = inputs.mask[text]
    written = []
    for i, special in zip(
        inputs.ids[text][mask], inputs.special[text][mask], strict=True
    ):
        if special:
            written.append("")
        elif i < len(pieces) and pieces[i] != str(i):
            written.append(pieces[i])
        else:
            written.append(f" {i}")
    return written
