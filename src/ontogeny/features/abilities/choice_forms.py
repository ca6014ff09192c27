"""Multiple choice in files: a prompt, answers and the right one, in the forms of public tasks.

Prompts are worded as EleutherAI's harness words them, so that numbers can be set side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError
from ...tasks.records import Example, group_of, named, text_of

PROMPT = ("prompt", "question", "context", "text")
ANSWERS = ("answers", "choices", "options")
RIGHT = ("right", "answer", "label", "answerkey", "gold", "correct")
_LETTERS = "abcdefghij"
_NUMBERED = re.compile(r"answer_?\d+", re.IGNORECASE)

Form = Callable[[Mapping[str, Any]], tuple[str, Sequence[Any], Any, Sequence[Any]]]
"""From a record to its prompt, its answers, the right one, and what the answers are called."""


def is_choices(fields: Sequence[str]) -> bool:
    """Return whether records with these fields are questions with answers to choose from.

    Examples
    --------
    >>> is_choices(["prompt", "answer1", "answer2", "right"]), is_choices(["right", "wrong"])
    (True, False)
    """
    return _form_of(fields) is not None


def choice_of(record: Mapping[str, Any], stem: str, where: str) -> Example:
    """Return the question of a record.

    Raises
    ------
    ArgumentError
        If it holds none.

    Examples
    --------
    >>> record = {"goal": "open it", "sol1": "push", "sol2": "eat it", "label": 0}
    >>> choice_of(record, "piqa", "").texts
    (' push', ' eat it')
    """
    form = _form_of(record)
    if form is None:
        raise ArgumentError("it has no prompt, or no answers to choose from")
    try:
        prompt, answers, right, labels = form(record)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ArgumentError(
            f"its fields do not hold what others of its form do ({error})"
        ) from None
    texts = tuple(text_of({"answer": answer}, "answer", "answer").strip() for answer in answers)
    if len(texts) < 2:
        raise ArgumentError(f"it has {len(texts)} answers to choose from, and needs two")
    if len(set(texts)) < len(texts):
        raise ArgumentError("two of its answers are equal")
    place = _place(right, texts, labels)
    return Example.after(prompt, texts, place, group_of(record, stem), where)


def _place(right: Any, answers: Sequence[str], labels: Sequence[Any]) -> int:
    """Return which answer is right: by its label, its text, its letter, or counted from 0."""
    value = str(right).strip()
    counted = range(len(answers))
    first = () if type(right) is int else (answers,)
    for names in (labels, *first, counted, _LETTERS):
        texts = [str(name).lower() for name in names][: len(answers)]
        if value.lower() in texts:
            return texts.index(value.lower())
    raise ArgumentError(f"its right answer {value!r} is none of its {len(answers)} answers")


def _arc(record: Mapping[str, Any]) -> Any:
    question: Any = record["question"]
    choices: Any = record["choices"] if "choices" in record else question["choices"]
    if isinstance(question, dict):  # as AI2 wrote it
        question = question["stem"]
    if isinstance(choices, dict):
        answers, labels = choices["text"], choices["label"]
    else:
        answers, labels = ([choice[key] for choice in choices] for key in ("text", "label"))
    return f"Question: {question}\nAnswer:", answers, record["answerKey"], labels


def _hellaswag(record: Mapping[str, Any]) -> Any:
    context = f"{record['ctx_a']} {record['ctx_b'].capitalize()}"
    label = record.get("activity_label")
    prompt = f"{label}: {context}" if label else context
    return _cleaned(prompt), [*map(_cleaned, record["endings"])], record["label"], ()


def _cleaned(text: str) -> str:
    """Return a text of HellaSwag without the marks of its sources."""
    text = re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". "))
    return text.replace("  ", " ")


def _copa(record: Mapping[str, Any]) -> Any:
    word = {"cause": "because", "effect": "therefore"}[record["question"]]
    answers = [record[name][0].lower() + record[name][1:] for name in ("choice1", "choice2")]
    return f"{record['premise'].strip()[:-1]} {word}", answers, record["label"], ()


def _boolq(record: Mapping[str, Any]) -> Any:
    prompt = f"{record['passage']}\nQuestion: {record['question']}?\nAnswer:"
    right = record["label"] if "label" in record else record["answer"]
    return prompt, ("no", "yes"), right, ("false", "true")


def _piqa(record: Mapping[str, Any]) -> Any:
    answers = (record["sol1"], record["sol2"])
    return f"Question: {record['goal']}\nAnswer:", answers, record["label"], ()


def _plain(record: Mapping[str, Any]) -> Any:
    field, right = named(record, ANSWERS), named(record, RIGHT)
    answers = [v for k, v in record.items() if _NUMBERED.fullmatch(k)]
    while answers and not answers[-1]:  # rows with fewer answers than columns
        answers.pop()
    if right is None:
        raise ArgumentError("it has no field 'right'")
    prompt = text_of(record, named(record, PROMPT), "prompt")
    return prompt, list(record[field]) if field else answers, record[right], ()


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
