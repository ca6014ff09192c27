"""Texts in columns, as of CSV, JSON lines or Parquet, and which of the columns holds them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import ArgumentError
from ..inputs.conversations import messages_of
from .prompts import prompt_columns, prompted

BINARY = (".parquet", ".arrow")
SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".tab", *BINARY)
MESSAGES = ("messages", "conversations", "conversation")  # usual names of a column of conversations
# Usual names of a column of texts.
TEXT_NAMES = ("sentence", "text", "review", "content", "document", "phrase")
# The line of each record and its fields; in their place a text, why the line holds none.
Rows: TypeAlias = Iterator[tuple[int, Any]]
_SEEN = 200  # rows by which a column is judged


def read_columns(path: Path, content: str, field: str | int | None) -> tuple[list[Any], str]:
    """Return texts or conversations of a file, and the name of their column, empty where none is.

    Parameters
    ----------
    path
        Its suffix says what it is.
    content
        What it holds, of all but Parquet and Arrow.
    field
        The column, by name, or by number from 0 where there is no row of names; None guesses it.

    Raises
    ------
    ArgumentError
        If the file is not what its name says, or has no such column; the message names its columns.
    """
    suffix = path.suffix.lower()
    if suffix in BINARY:
        return _texts(path, _binary(path, suffix), field)
    if suffix == ".json":
        return _texts(path, _json(path, content), field)
    if suffix in (".jsonl", ".ndjson"):
        # Not splitlines(): JSON strings may hold the other line separators of Unicode.
        numbered = [(n, line) for n, line in enumerate(content.split("\n"), 1) if line.strip()]
        rows = {f"line {n}": parse_json(f"{path}, line {n}", line) for n, line in numbered}
        return _texts(path, rows, field)
    head = content.partition("\n")[0]
    semicolons = ";" in head and "," not in head and "; " not in head  # not those of a sentence
    separator = "\t" if suffix != ".csv" else ";" if semicolons else ","
    return _texts(path, _table(path, content, separator, field), field)


def _json(path: Path, content: str) -> dict[str, Any]:
    values = parse_json(str(path), content)
    if isinstance(values, dict):  # such as {"data": [...]}
        lists = [value for value in values.values() if isinstance(value, list)]
        if len(lists) != 1:
            raise ArgumentError(f"{path} must hold a list; it holds an object.")
        values = lists[0]
    if not isinstance(values, list):
        raise ArgumentError(f"{path} must hold a list; it holds {_kind(values)}.")
    return {f"entry {n}": value for n, value in enumerate(values, 1)}


def json_lines(lines: Iterable[str]) -> Rows:
    """Read lines of JSON that hold an object each; a line without text is left out.

    Examples
    --------
    >>> list(json_lines(['{"text": "a"}', "", "[1]"]))
    [(1, {'text': 'a'}), (3, 'it is not an object')]
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                yield number, f"it is not JSON ({getattr(error, 'msg', error)})"
                continue
            yield number, row if isinstance(row, dict) else "it is not an object"


def parse_json(where: str, content: str) -> Any:
    """Return what JSON holds.

    Raises
    ------
    ArgumentError
        If it is none; the message begins with `where` it stands.
    """
    try:
        return json.loads(content)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ArgumentError(f"{where} is not JSON: {error}.") from None


def _table(path: Path, content: str, separator: str, field: str | int | None) -> dict[str, Any]:
    """Return rows by their line; the first names the columns if it reads like names."""
    reader = csv.reader(
        (f"{line}\n" for line in content.split("\n")),
        delimiter=separator,
        quoting=csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    records: dict[str, list[str]] = {}
    try:
        for record in reader:
            if any(value.strip() for value in record):
                records[f"line {reader.line_num}"] = record
    except csv.Error as error:
        raise ArgumentError(f"{path}, line {reader.line_num} is not CSV: {error}.") from None
    if not records:
        return {}
    first = next(iter(records.values()))
    wrong = next((where for where, r in records.items() if len(r) != len(first)), None)
    if wrong is not None:
        raise ArgumentError(
            f"{path}, {wrong} has {len(records[wrong])} fields instead of {len(first)}."
        )
    has_header = not isinstance(field, int) and (field in first or _are_names(first))
    names: Sequence[Any] = first if has_header else range(len(first))
    rows = list(records.items())[has_header:]
    return {where: dict(zip(names, record, strict=True)) for where, record in rows}


def _are_names(first: Sequence[str]) -> bool:
    """Return whether a row names columns: different short words, none of them a sentence."""
    short = all(value.strip() and len(value.split()) <= 3 and len(value) < 30 for value in first)
    usual = any(value.strip().lower() in TEXT_NAMES for value in first)
    return usual or (short and len(set(first)) == len(first) and not any(map(_is_number, first)))


def _binary(path: Path, suffix: str) -> dict[str, Any]:
    try:
        from pyarrow import ArrowException, ipc, memory_map, parquet
    except ImportError:
        raise ArgumentError(
            f"{path} is read with pyarrow, which is not installed: pip install pyarrow."
        ) from None
    try:
        if suffix == ".arrow":  # as save_to_disk of datasets writes
            stored = memory_map(str(path))
            is_file = stored.read(6) == b"ARROW1"  # else a stream
            stored.seek(0)
            rows = (ipc.open_file if is_file else ipc.open_stream)(stored).read_all().to_pylist()
        else:
            rows = parquet.read_table(path).to_pylist()
    except (OSError, ArrowException) as error:
        why = str(error).split("\n")[0]
        raise ArgumentError(f"{path} is not readable as {suffix[1:].title()}: {why}") from None
    return {f"row {n}": row for n, row in enumerate(rows)}


def _texts(path: Path, rows: Mapping[str, Any], field: str | int | None) -> tuple[list[Any], str]:
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
        if value is not None and not isinstance(value, str) and chat is None and value != []:
            raise ArgumentError(f"{path}, {where} must be a string; it is {_kind(value)}.")
        values.append(chat or value or "")
    return values, str(column) if objects else ""


def _guessed(path: Path, rows: Sequence[Mapping[Any, Any]]) -> Any:
    """Return the column that holds texts: the one of a usual name, or the only one with words."""
    names = list(dict.fromkeys(name for row in rows[:_SEEN] for name in row))
    usual = [n for word in ("text", *TEXT_NAMES) for n in names if str(n).lower() == word]
    chats = [name for name in names if _share(rows, name, messages_of) == 1]
    if named := [name for name in MESSAGES if name in chats]:
        return named[0]
    strings = [name for name in names if _share(rows, name, _is_text) == 1]
    worded = [n for n in strings if _share(rows, n, lambda text: len(text.split()) > 1) > 1 / 2]
    for candidates in ([n for n in usual if n in strings][:1], worded, chats, strings):
        if len(candidates) == 1:
            return candidates[0]
    what = "several columns of text" if worded else "no column of text"
    raise ArgumentError(
        f"{path} has {what} ({_listed(worded or names)}): name one with "
        '--set inputs.field=NAME, or field = "NAME" under [inputs].'
    )


def _share(rows: Iterable[Mapping[Any, Any]], name: Any, holds: Any) -> float:
    values = [row.get(name) for row in rows if row.get(name) not in (None, "", [])][:_SEEN]
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
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), f"the value {value!r}")
