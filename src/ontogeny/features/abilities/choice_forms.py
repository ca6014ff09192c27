"""Multiple choice in files: a prompt, answers and the right one, in the forms of public tasks.

Prompts are worded as EleutherAI's harness words them, so that numbers can be set side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import ArgumentError
from ...tasks.records import Example, group_of, named, text_of
from .choice_keys import Question, chosen, meaning_of

PROMPT = ("prompt", "question", "context", "text")
ANSWERS = ("answers", "choices", "options")
RIGHT = ("right", "answer", "label", "answerkey", "gold", "correct")
_PLACE = ("from 0",)  # as public tasks count
_NUMBERED = re.compile(r"answer_?\d+", re.IGNORECASE)

Form = Callable[[Mapping[str, Any]], Question]
"""From a record to its question."""


def is_choices(fields: Sequence[str]) -> bool:
    """Return whether records with these fields are questions with answers to choose from.

    Examples
    --------
    >>> (
    ...     is_choices(["prompt", "answer1", "answer2", "right"]),
    ...     is_choices(["right", "wrong"]),
    ... )
    (True, False)
    """
    return _form_of(fields) is not None


def question_of(record: Mapping[str, Any]) -> Question:
    """Return the question of a record.

    Raises
    ------
    ArgumentError
        If it holds none.

    Examples
    --------
    >>> question_of(
    ...     {"goal": "open it", "sol1": "push", "sol2": "eat it", "label": 0}
    ... ).key
    0
    """
    form = _form_of(record)
    if form is None:
        raise ArgumentError("it has no prompt, or no answers to choose from")
    try:
        question = form(record)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ArgumentError(
            f"its fields do not hold what others of its form do ({error})"
        ) from None
    texts = [
        text_of({"answer": answer}, "answer", "answer").strip()
        for answer in question.answers
    ]
    if len(texts) < 2:
        raise ArgumentError(
            f"it has {len(texts)} answers to choose from, and needs two"
        )
    if len(set(texts)) < len(texts):
        raise ArgumentError("two of its answers are equal")
    return replace(question, answers=texts)


def choice_of(
    record: Mapping[str, Any], stem: str, where: str, meaning: str = ""
) -> Example:
    """Return the example of a record.

    Parameters
    ----------
    record, stem, where
        The record, the name of its file, and its line.
    meaning
        What the keys of its file mean; by default what this one can mean alone.

    Raises
    ------
    ArgumentError
        If it holds no question, or its key does not fit the meaning.

    Examples
    --------
    >>> record = {"goal": "open it", "sol1": "push", "sol2": "eat it", "label": 0}
    >>> choice_of(record, "piqa", "").texts
    (' push', ' eat it')
    """
    question = question_of(record)
    place = chosen(question, meaning or meaning_of([(where, question)]))
    group = group_of(record, stem)
    return Example.after(question.prompt, question.answers, place, group, where)


def keys_of(records: Iterable[tuple[int, Any]], name: str) -> str:
    """Return what the keys of a file's records mean.

    Raises
    ------
    ArgumentError
        If two meanings fit all of them and give other answers.
    """
    return meaning_of(_questions(records, name))


def _questions(
    records: Iterable[tuple[int, Any]], name: str
) -> Iterator[tuple[str, Question]]:
    for line, record in records:
        try:
            if isinstance(record, dict):
                yield f"{name}, line {line}", question_of(record)
        except ArgumentError:
            continue  # it is named where the examples are made


def _arc(record: Mapping[str, Any]) -> Question:
    question: Any = record["question"]
    choices: Any = record["choices"] if "choices" in record else question["choices"]
    if isinstance(question, dict):  # as AI2 wrote it
        question = question["stem"]
    if isinstance(choices, dict):
        answers = choices["text"]
        labels = choices["label"]
    else:
        answers, labels = (
            [choice[key] for choice in choices] for key in ("text", "label")
        )
    return Question(
        f"Question: {question}\nAnswer:",
        answers,
        record["answerKey"],
        labels,
        ("label",),
    )


def _hellaswag(record: Mapping[str, Any]) -> Question:
    context = f"{record['ctx_a']} {record['ctx_b'].capitalize()}"
    label = record.get("activity_label")
    prompt = f"{label}: {context}" if label else context
    endings = [*map(_cleaned, record["endings"])]
    return Question(_cleaned(prompt), endings, record["label"], meanings=_PLACE)


def _cleaned(text: str) -> str:
    """Return a text of HellaSwag without the marks of its sources."""
    text = re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". "))
    return text.replace("  ", " ")


def _copa(record: Mapping[str, Any]) -> Question:
    word = {"cause": "because", "effect": "therefore"}[record["question"]]
    answers = [
        record[name][0].lower() + record[name][1:] for name in ("choice1", "choice2")
    ]
    prompt = f"{record['premise'].strip()[:-1]} {word}"
    return Question(prompt, answers, record["label"], meanings=_PLACE)


def _boolq(record: Mapping[str, Any]) -> Question:
    prompt = f"{record['passage']}\nQuestion: {record['question']}?\nAnswer:"
    right = record["label"] if "label" in record else record["answer"]
    meanings = ("label", "text", *_PLACE)
    return Question(prompt, ("no", "yes"), right, ("false", "true"), meanings)


def _piqa(record: Mapping[str, Any]) -> Question:
    answers = (record["sol1"], record["sol2"])
    return Question(
        f"Question: {record['goal']}\nAnswer:",
        answers,
        record["label"],
        meanings=_PLACE,
    )


def _plain(record: Mapping[str, Any]) -> Question:
    field = named(record, ANSWERS)
    right = named(record, RIGHT)
    answers = [v for k, v in record.items() if _NUMBERED.fullmatch(k)]
    while answers and not answers[-1]:  # rows with fewer answers than columns
        answers.pop()
    if right is None:
        raise ArgumentError("it has no field 'right'")
    prompt = text_of(record, named(record, PROMPT), "prompt")
    return Question(prompt, list(record[field]) if field else answers, record[right])


_FORMS: dict[str, Form] = {
    "question answerKey": _arc,
    "ctx_a ctx_b endings label": _hellaswag,
    "premise choice1 choice2 question label": _copa,
    "passage question": _boolq,
    "goal sol1 sol2 label": _piqa,
}


def _form_of(fields: Iterable[str]) -> Form | None:
    fields = set(fields)
    for names, form in _FORMS.items():
        if set(names.split()) <= fields:
            return form
    answers = named(fields, ANSWERS) or any(map(_NUMBERED.fullmatch, fields))
    return _plain if answers and named(fields, PROMPT) is not None else None
