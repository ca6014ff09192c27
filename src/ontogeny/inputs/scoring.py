"""Which places of texts are scored: all of them, the answers, labelled tokens, or the last ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..arrays import is_array, to_numpy
from ..errors import ArgumentError, check_choice

Ranges: TypeAlias = list[tuple[int, int]]
REGEX = "regex:"  # what a separator begins with that is a regular expression
MOST_PLACES = 32  # of texts of one form, whose places are distinguished
IGNORED = -100  # the label of a token that nobody asks for, as in transformers
OCCURRENCES = ("first", "last")
_LAST = re.compile(r"last:([1-9][0-9]*)")
_ALLOWED = (
    "'all', 'answer', 'labels' or 'last:K' with a whole number K, such as 'last:1'"
)


class AnswersCutError(ArgumentError):
    """Texts are cut before what is scored of them."""


@dataclass(frozen=True)
class Scoring:
    """Which places of the texts are scored, as it was asked for.

    Parameters
    ----------
    score
        ``"all"``, ``"answer"``, ``"labels"`` or ``"last:K"``; empty where nothing was asked.
    after
        A separator that answers stand after, or ``"regex:"`` with a regular expression.
    occurrence
        ``"first"`` or ``"last"``: which occurrence counts where a text has several.

    Raises
    ------
    ArgumentError
        If `score` is none of these, `after` goes with another score, or is no regular expression.

    Examples
    --------
    >>> Scoring("last:2").last, Scoring(after="=").score
    (2, 'answer')
    >>> Scoring(after="=").ranges("1+2=3")
    [(4, 5)]
    """

    score: str = ""
    after: str = ""
    occurrence: str = "last"

    def __post_init__(self) -> None:
        check_choice("answer_occurrence", self.occurrence, OCCURRENCES)
        known = self.score in ("", "all", "answer", "labels") or _LAST.fullmatch(
            self.score
        )
        if not known:
            raise ArgumentError(f"score must be {_ALLOWED}; got {self.score!r}.")
        if self.after and self.score not in ("", "answer"):
            raise ArgumentError(
                f"answer_after={self.after!r} goes with score='answer'; got {self.score!r}."
            )
        if self.after:
            object.__setattr__(self, "score", "answer")
            self._pattern()

    @property
    def last(self) -> int | None:
        """K of ``"last:K"``."""
        match = _LAST.fullmatch(self.score)
        return int(match[1]) if match else None

    @property
    def is_regex(self) -> bool:
        """Whether the separator is a regular expression."""
        return self.after.startswith(REGEX)

    @property
    def words(self) -> str:
        """What is scored, for messages; empty where nothing was asked."""
        if self.after:
            return f"what follows the {self.occurrence} {self.after!r}"
        if self.last:
            return f"the last {self.last} tokens" if self.last > 1 else "the last token"
        named = {
            "answer": "answers",
            "labels": "tokens with a label",
            "all": "all tokens",
        }
        return named.get(self.score, "")

    def ranges(self, text: str) -> Ranges:
        """Return the characters of what follows the separator; nothing where a text lacks it."""
        found = list(self._pattern().finditer(text))
        if not found:
            return []
        return answer_range(text, found[0 if self.occurrence == "first" else -1].end())

    def several(self, text: str) -> bool:
        """Return whether a text holds the separator more than once."""
        return len(list(self._pattern().finditer(text))) > 1

    def _pattern(self) -> re.Pattern[str]:
        if not self.is_regex:
            return re.compile(re.escape(self.after))
        try:
            pattern = re.compile(self.after.removeprefix(REGEX))
        except re.error as error:
            raise ArgumentError(
                f"answer_after={self.after!r} is no regular expression: {error}."
            ) from None
        if pattern.fullmatch(""):
            raise ArgumentError(f"answer_after={self.after!r} matches an empty text.")
        return pattern


def answer_range(text: str, start: int) -> Ranges:
    """Return the range from a character to the end of a text, without white space at both ends.

    Examples
    --------
    >>> answer_range("2 + 3 = 5 ", 7), answer_range("2 + 3 = ", 7)
    ([(8, 9)], [])
    """
    rest = text[start:]
    answer = rest.strip()
    if not answer:
        return []
    begin = start + len(rest) - len(rest.lstrip())
    return [(begin, begin + len(answer))]


def has_one_form(lengths: np.ndarray) -> bool:
    """Return whether texts of these lengths all have the same few places.

    Examples
    --------
    >>> has_one_form(np.array([3, 3])), has_one_form(np.array([3, 4]))
    (True, False)
    """
    return bool((lengths == lengths[0]).all() and lengths[0] <= MOST_PLACES)


def last_places(ordinary: np.ndarray, count: int) -> np.ndarray:
    """Return (n, L) bool: the last `count` ordinary tokens of each text; all of one with fewer.

    Examples
    --------
    >>> last_places(np.array([[True, True, True, False]]), 2).tolist()
    [[False, True, True, False]]
    """
    from_end = np.cumsum(ordinary[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(ordinary & (from_end <= count))


def short_notes(scoring: Scoring, lengths: np.ndarray) -> tuple[str, ...]:
    """Return a line on texts with fewer ordinary tokens than are scored of each.

    Examples
    --------
    >>> short_notes(Scoring("last:4"), np.array([3, 3, 9]))
    ('2 of 3 texts have fewer than 4 tokens: all of theirs are scored',)
    """
    count = int((lengths < (scoring.last or 0)).sum())
    if not count:
        return ()
    fewer = f"{count:,} of {len(lengths):,} texts have fewer than {scoring.last} tokens"
    return (f"{fewer}: all of theirs are scored",)


def after_ids(
    ids: np.ndarray, mask: np.ndarray, separator: Sequence[int], occurrence: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (n, L) what follows some ids in each text, and which texts lack them or repeat them.

    Examples
    --------
    >>> ids = np.array([[1, 9, 2, 9, 3], [4, 5, 6, 7, 8]])
    >>> places, lacks, repeats = after_ids(
    ...     ids, np.ones_like(ids, dtype=bool), [9], "first"
    ... )
    >>> places.astype(int).tolist(), lacks.tolist(), repeats.tolist()
    ([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], [False, True], [True, False])
    """
    size = len(separator)
    width = ids.shape[1]
    starts = np.ones((len(ids), max(width - size + 1, 0)), dtype=bool)
    for place, token in enumerate(separator):
        here = slice(place, place + starts.shape[1])
        starts &= (ids[:, here] == token) & mask[:, here]
    lacks = ~starts.any(axis=1)
    order = starts if occurrence == "first" else starts[:, ::-1]
    found = order.argmax(axis=1) if starts.shape[1] else np.zeros(len(ids), dtype=int)
    begin = found if occurrence == "first" else starts.shape[1] - 1 - found
    places = np.asarray(
        np.arange(width) >= np.where(lacks, width, begin + size)[:, None]
    )
    return places, np.asarray(lacks), starts.sum(axis=1) > 1


def labelled_places(labels: Any, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return (n, L) bool: the tokens that labels ask for.

    Labels are those of transformers, the token's own id where it is asked for and -100 elsewhere.
    Taken as well are labels one place earlier, at the token that predicts, as nanoGPT's targets
    stand, and a mask of bool.

    Raises
    ------
    ArgumentError
        If they have another shape than the ids, or hold other ids.

    Examples
    --------
    >>> ids = np.array([[5, 6, 7]])
    >>> there = np.ones_like(ids, dtype=bool)
    >>> labelled_places([[-100, 6, 7]], ids, there).tolist()
    [[False, True, True]]
    >>> labelled_places([[6, -100, -100]], ids, there).tolist()
    [[False, True, False]]
    """
    array = to_numpy(labels) if is_array(labels) else _rows(labels, ids.shape)
    if array.shape != ids.shape:
        raise ArgumentError(
            f"token_labels must have a label for each token, {ids.shape}; got {array.shape}."
        )
    if array.dtype == bool:
        return array & mask
    if array.dtype.kind not in "iu":
        raise ArgumentError(
            f"token_labels must hold ids, {IGNORED} where a token is not asked for, or be a mask "
            f"of bool; got {array.dtype}."
        )
    asked = (array != IGNORED) & mask
    if not asked.any():
        raise ArgumentError(
            f"token_labels ask for no token: all of them are {IGNORED}."
        )
    if (array[asked] == ids[asked]).all():
        return asked
    ahead = np.zeros_like(asked)
    ahead[:, 1:] = asked[:, :-1]
    of_next = array[:, :-1] == ids[:, 1:]
    beyond = asked[:, -1].any() or not mask[ahead].all()
    if not beyond and of_next[asked[:, :-1]].all():
        return ahead
    wrong = int(np.flatnonzero(((array != ids) & asked).any(axis=1))[0])
    unsigned = {2**bits + IGNORED for bits in (8, 16, 32)}
    wrapped = unsigned.intersection(array[wrong][asked[wrong]].tolist())
    why = "Are they of other texts, or in another order?"
    if wrapped:
        why = f"{wrapped.pop():,} is {IGNORED} without its sign: store them as int64."
    raise ArgumentError(
        f"token_labels must be the token's own id, or {IGNORED} where it is not asked for; those "
        f"of text {wrong} are other ids. {why}"
    )


def _rows(labels: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return lists of labels that may differ in length as an array, filled on the right."""
    rows = [to_numpy(row) if is_array(row) else np.asarray(row) for row in labels]
    if len(rows) != shape[0] or any(
        row.ndim != 1 or len(row) > shape[1] for row in rows
    ):
        raise ArgumentError(
            f"token_labels must have one row of labels for each of {shape[0]} texts, no longer "
            f"than {shape[1]}."
        )
    if all(row.dtype == bool for row in rows):
        return np.stack([np.pad(row, (0, shape[1] - len(row))) for row in rows])
    padded = [
        np.pad(row, (0, shape[1] - len(row)), constant_values=IGNORED)
        for row in (row.astype(np.int64) for row in rows)
    ]
    return np.stack(padded)


def places_of_ids(
    scoring: Scoring,
    ids: np.ndarray,
    mask: np.ndarray,
    ordinary: np.ndarray,
    separator: Sequence[int],
    labels: Any,
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return (n, L) which token ids are scored, None for all, and what is to be said of them.

    Raises
    ------
    ArgumentError
        If nothing would be scored, or what the score is found by is missing or does not go with it.
    """
    if labels is not None and scoring.score not in ("", "labels"):
        raise ArgumentError(
            f"token_labels go with score='labels'; got {scoring.score!r}."
        )
    if labels is not None:
        return labelled_places(labels, ids, mask) & ordinary, ()
    if scoring.score == "labels":
        raise ArgumentError(
            "score='labels' needs token_labels, an array beside the ids with -100 where a token is "
            "not asked for (--token-labels FILE)."
        )
    if separator:
        places, lacks, repeats = after_ids(ids, mask, separator, scoring.occurrence)
        if not lacks.all() and not (places & ordinary).any():
            raise ArgumentError(
                f"answer_after={scoring.after!r}: in none of {len(ids):,} texts does anything "
                "follow it, so nothing would be scored."
            )
        count = int(repeats.sum())
        notes = separator_notes(scoring, len(ids), int(lacks.sum()), lambda: count)
        return places & ordinary, tuple(notes)
    if scoring.score == "answer":
        raise ArgumentError(
            "score='answer' needs answer_after: of token ids the ids that stand before an answer "
            "(--answer-after 23), or take score='last:K'."
        )
    if scoring.last is None:
        return None, ()
    return last_places(ordinary, scoring.last), short_notes(
        scoring, ordinary.sum(axis=1)
    )


def text_notes(scoring: Scoring, texts: Sequence[str]) -> list[str]:
    """Return what is to be said of texts that lack the separator, or hold it several times.

    Raises
    ------
    ArgumentError
        If all texts lack it.

    Examples
    --------
    >>> text_notes(Scoring(after="="), ["1=1", "1", "1=1=1"])[0]
    "1 of 3 texts lack '=' and are left out"
    """
    lacks = sum(not scoring._pattern().search(text) for text in texts)
    return separator_notes(
        scoring, len(texts), lacks, lambda: sum(map(scoring.several, texts))
    )


def separator_notes(
    scoring: Scoring, count: int, lacks: int, repeats: Callable[[], int]
) -> list[str]:
    """Return a line on texts that lack the separator, and one on those that hold it repeatedly.

    Raises
    ------
    ArgumentError
        If all texts lack it.
    """
    if lacks == count:
        raise ArgumentError(
            f"answer_after={scoring.after!r}: none of {count:,} texts holds it, so nothing would "
            "be scored."
        )
    notes = []
    if lacks:
        notes.append(
            f"{lacks:,} of {count:,} texts lack {scoring.after!r} and are left out"
        )
    if several := repeats():
        other = OCCURRENCES[1 - OCCURRENCES.index(scoring.occurrence)]
        notes.append(
            f"{several:,} of {count:,} texts hold {scoring.after!r} several times: the answer is "
            f"what follows the {scoring.occurrence} one (answer_occurrence = {other!r} takes the "
            "other)"
        )
    return notes
