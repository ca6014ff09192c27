"""Texts in columns, as of CSV, JSON lines or Parquet, and which of the columns holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..inputs.conversations import messages_of
from .prompts import prompt_columns, prompted
from .rows import COUNTED, FORMATS, kind_of, read_rows
from .split_column import rows_of

# Usual names of a column of conversations.
MESSAGES = ("messages", "conversations", "conversation")
# Usual names of a column of texts.
TEXT_NAMES = ("sentence", "text", "review", "content", "document", "phrase")
_SEEN = 200  # rows by which a column is judged


def read_columns(
    path: Path, content: str, field: str | int | None, split: str = ""
) -> tuple[list[Any], str]:
    """Return texts or conversations of a file, and the name of their column, empty where none is.

    Parameters
    ----------
    path
        Its suffix says what it is.
    content
        What it holds, of all but Parquet and Arrow.
    field
        The column, by name, or by number from 0 where there is no row of names; None guesses it.
    split
        ``"training"`` or ``"held-out"``: only rows whose column ``split`` says so.

    Raises
    ------
    ArgumentError
        If the file is not what its name says, or has no such column; the message names its columns.
    """
    kind = FORMATS[path.suffix.lower()]
    rows = read_rows(path, kind, content, lambda first: _has_names(first, field))
    named = {f"{COUNTED.get(kind, 'line')} {number}": row for number, row in rows}
    for where, row in named.items():
        if isinstance(row, ArgumentError):
            raise ArgumentError(f"{path}, {where}: {row}.")
    return _texts(path, rows_of(path, named, split), field)


def _has_names(first: Sequence[str], field: str | int | None) -> bool:
    return not isinstance(field, int) and (field in first or _are_names(first))


def _are_names(first: Sequence[str]) -> bool:
    """Return whether a row names columns: different short words, none of them a sentence."""
    short = all(
        value.strip() and len(value.split()) <= 3 and len(value) < 30 for value in first
    )
    usual = any(value.strip().lower() in TEXT_NAMES for value in first)
    return usual or (
        short and len(set(first)) == len(first) and not any(map(_is_number, first))
    )


def _texts(
    path: Path, rows: Mapping[str, Any], field: str | int | None
) -> tuple[list[Any], str]:
    objects = [row for row in rows.values() if isinstance(row, Mapping)]
    column = field
    if objects and column is None and (pair := prompt_columns(objects)):
        return prompted(path, rows, pair), " and ".join(pair)
    if objects and column is None:
        column = _guessed(path, objects)
    values = []
    for where, row in rows.items():
        value = row
        if isinstance(row, Mapping):
            if column not in row:
                raise ArgumentError(
                    f"{path}, {where} has no field {column!r}; it has {_listed(row)}. Name the "
                    'field of the texts: --set inputs.field=NAME, or field = "NAME" under [inputs].'
                )
            value = row[column]
        chat = messages_of(value)
        if (
            value is not None
            and not isinstance(value, str)
            and chat is None
            and value != []
        ):
            raise ArgumentError(
                f"{path}, {where} must be a string; it is {kind_of(value)}."
            )
        values.append(chat or value or "")
    return values, str(column) if objects else ""


def _guessed(path: Path, rows: Sequence[Mapping[Any, Any]]) -> Any:
    """Return the column that holds texts: the one of a usual name, or the only one with words."""
    names = list(dict.fromkeys(chain.from_iterable(rows[:_SEEN])))
    usual = [
        n for word in ("text", *TEXT_NAMES) for n in names if str(n).lower() == word
    ]
    chats = [name for name in names if _share(rows, name, messages_of) == 1]
    if named := [name for name in MESSAGES if name in chats]:
        return named[0]
    strings = [name for name in names if _share(rows, name, _is_text) == 1]
    worded = [
        n
        for n in strings
        if _share(rows, n, lambda text: len(text.split()) > 1) > 1 / 2
    ]
    for candidates in ([n for n in usual if n in strings][:1], worded, chats, strings):
        if len(candidates) == 1:
            return candidates[0]
    what = "several columns of text" if worded else "no column of text"
    raise ArgumentError(
        f"{path} has {what} ({_listed(worded or names)}): name one with "
        '--set inputs.field=NAME, or field = "NAME" under [inputs].'
    )


def _share(rows: Iterable[Mapping[Any, Any]], name: Any, holds: Any) -> float:
    values = [row.get(name) for row in rows if row.get(name) not in (None, "", [])][
        :_SEEN
    ]
    return sum(bool(holds(value)) for value in values) / len(values) if values else 0.0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not _is_number(value)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _listed(names: Iterable[Any]) -> str:
    names = [repr(name) for name in names]
    return ", ".join(names[:5]) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )
