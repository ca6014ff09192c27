"""What the keys of right answers mean, decided once for a file: a text, a letter, or a number."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from ...errors import ArgumentError

MEANINGS = ("text", "letter", "from 0", "from 1")
"""What a key may be, where the form of a file leaves it open."""

_WORDS = {
    "text": "as a text",
    "label": "as a label",
    "letter": "as a letter",
    "from 0": "counted from 0",
    "from 1": "counted from 1",
    "text in any case": "as a text in any case",
    "label in any case": "as a label in any case",
    "letter in any case": "as a letter in any case",
}
_EXACT = ("label", "text", "letter", "from 0", "from 1")


@dataclass(frozen=True)
class Question:
    """A question of a file, before it is known what its key means.

    Parameters
    ----------
    prompt
        What stands before the answers.
    answers
        The answers.
    key
        What names the right one.
    labels
        What the answers are called.
    meanings
        What keys of this form may be.
    """

    prompt: str
    answers: Sequence[Any]
    key: Any
    labels: Sequence[Any] = ()
    meanings: tuple[str, ...] = MEANINGS

    def readings(self) -> dict[str, int]:
        """Return which answer is right, by each meaning that its key may have.

        Examples
        --------
        >>> Question("", ["b", "A", "c"], "A").readings()
        {'text': 1, 'letter': 0, 'text in any case': 1, 'letter in any case': 0}
        >>> Question("", ["3", "2", "1"], "1").readings()["from 1"]
        0
        """
        number = len(self.answers)
        value = str(self.key).strip()
        answers = [str(answer).strip() for answer in self.answers]
        is_number = isinstance(self.key, int | float) and not isinstance(self.key, bool)
        labels = [str(label).strip() for label in self.labels]
        names = {
            "label": labels,
            "text": [] if is_number else answers,
            "letter": list(ascii_uppercase[:number]),
        }
        found: dict[str, int] = {}
        for case, fold in (("", str), (" in any case", str.casefold)):
            for meaning, texts in names.items():
                places = [
                    i for i, text in enumerate(texts) if fold(text) == fold(value)
                ]
                exact = [found[meaning]] if meaning in found else places
                if meaning in self.meanings and len(exact) == 1:
                    found[meaning + case] = exact[0]
        counted = _counted(self.key)
        for first in (0, 1):
            if f"from {first}" in self.meanings and 0 <= counted - first < number:
                found[f"from {first}"] = counted - first
        return found


def _counted(key: Any) -> int:
    """Return the number that a key writes, -1 if it writes none."""
    if isinstance(key, bool):
        return -1
    if isinstance(key, float) and key.is_integer():
        return int(key)
    text = str(key).strip()
    return int(text) if text.isascii() and text.isdigit() else -1


def meaning_of(questions: Iterable[tuple[str, Question]]) -> str:
    """Return what the keys of a file mean: what fits all its questions as it stands, if possible.

    What is written otherwise than an answer or a letter by its case alone counts where nothing else
    fits. A question that fits nothing is not asked. Where no meaning fits all, it is the one that
    fits most, and the others are left out.

    Parameters
    ----------
    questions
        Where each stands, and the question.

    Raises
    ------
    ArgumentError
        If two meanings fit all questions and give other answers.

    Examples
    --------
    >>> meaning_of(
    ...     [
    ...         ("line 1", Question("", ["x", "y"], "0")),
    ...         ("line 2", Question("", "xy", "1")),
    ...     ]
    ... )
    'from 0'
    """
    fitting = Counter[str]()
    number = 0
    apart: dict[tuple[str, str], str] = {}
    for where, question in questions:
        readings = question.readings()
        number += bool(readings)
        fitting.update(readings.keys())
        for pair in itertools.combinations(readings, 2):
            if readings[pair[0]] != readings[pair[1]] and pair not in apart:
                apart[pair] = _two(where, question, pair, readings)
    for is_exact in (True, False):
        tier = [
            m for m, n in fitting.items() if n == number and (m in _EXACT) is is_exact
        ]
        for pair, words in apart.items():
            if set(pair) <= set(tier):
                raise ArgumentError(words)
        if tier:
            return min(tier, key=list(_WORDS).index)
    return max(_WORDS, key=lambda meaning: fitting[meaning])


def _two(
    where: str, question: Question, pair: Sequence[str], readings: dict[str, int]
) -> str:
    """Return the line that refuses a file of which two meanings fit all questions."""
    one, other = (
        f"{_WORDS[m]} it is {str(question.answers[readings[m]])!r}" for m in pair
    )
    says = " or ".join(f'keys = "{m.removesuffix(" in any case")}"' for m in pair)
    return (
        f"examples must say which answers are right in one way; {where}: of {question.key!r}, "
        f"{one} and {other}, and both fit every question of the file. Say {says} under "
        "[[observables]], or write the right answers as texts that no other reading fits."
    )


def chosen(question: Question, meaning: str) -> int:
    """Return which answer is right by a meaning; its exact form goes before that in any case.

    Raises
    ------
    ArgumentError
        If the key does not fit.
    """
    readings = question.readings()
    for name in (meaning, f"{meaning} in any case"):
        if name in readings:
            return readings[name]
    key = str(question.key).strip()
    number = len(question.answers)
    if not readings:
        raise ArgumentError(f"its right answer {key!r} is none of its {number} answers")
    raise ArgumentError(
        f"its right answer {key!r} is none of its {number} answers {_WORDS[meaning]}, as keys of "
        "this file are read"
    )
