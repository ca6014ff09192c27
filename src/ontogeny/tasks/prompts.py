"""Prompts and their answers in two columns of a table, as trl and fine-tuning files write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..inputs.conversations import messages_of

PROMPT = "prompt"
ANSWERS = ("completion", "answer")


def prompt_columns(rows: Sequence[Mapping[Any, Any]]) -> tuple[str, str] | None:
    """Return the columns of prompts and of answers, None where the first row has them not.

    A column of whole texts or conversations goes before them.

    Examples
    --------
    >>> prompt_columns([{"Prompt": "2 + 3 =", "answer": "5"}])
    ('Prompt', 'answer')
    """
    names = {str(name).lower(): str(name) for name in rows[0]}
    answer = next((names[name] for name in ANSWERS if name in names), None)
    if PROMPT not in names or answer is None or "text" in names or "messages" in names:
        return None
    return names[PROMPT], answer


def prompted(
    path: Path, rows: Mapping[str, Any], columns: tuple[str, str]
) -> list[Any]:
    """Return a prompt with its completion for each row; of messages the whole conversation.

    Rows without an answer are empty texts.

    Raises
    ------
    ArgumentError
        If one of both is neither a text, a number nor messages; the message names file and row.

    Examples
    --------
    >>> prompted(
    ...     Path("sums.csv"),
    ...     {"line 2": {"prompt": "2+3=", "answer": 5}},
    ...     ("prompt", "answer"),
    ... )
    [{'prompt': '2+3=', 'completion': '5'}]
    """
    return [_one(f"{path}, {where}", row, columns) for where, row in rows.items()]


def _one(where: str, row: Any, columns: tuple[str, str]) -> Any:
    if not isinstance(row, Mapping):
        raise ArgumentError(f"{where} has no columns {' and '.join(columns)}.")
    prompt, answer = (row.get(name) for name in columns)
    chats = [messages_of(value) for value in (prompt, answer)]
    if chats[0] and chats[1]:
        return [*chats[0], *chats[1]]
    if answer is None or answer == "":
        return ""
    for name, value in zip(columns, (prompt, answer), strict=True):
        if not isinstance(value, str | int | float):
            raise ArgumentError(
                f"{where}: {name!r} must be a text; it is {type(value).__name__}."
            )
    return {"prompt": str(prompt), "completion": str(answer)}
