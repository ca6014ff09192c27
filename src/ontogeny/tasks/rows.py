"""Rows of files: CSV, TSV, JSON, JSON lines, Parquet and Arrow, each value as it is written."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import ArgumentError

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
BINARY = ("parquet", "arrow")
# What a number of a row counts.
COUNTED = {"json": "entry", "parquet": "row", "arrow": "row"}
# The number of each row and what it holds; in its place an `ArgumentError`, why it cannot be read.
Rows: TypeAlias = Iterator[tuple[int, Any]]


def read_rows(
    path: Path,
    file_format: str,
    content: str,
    has_names: Callable[[Sequence[str]], bool] = lambda first: True,
    quotes: bool | None = None,
) -> Rows:
    """Read rows of a file by its format; `content` is what it holds, of all but Parquet and Arrow.

    Raises
    ------
    ArgumentError
        If the file as a whole is not what its name says.
    """
    if file_format in BINARY:
        return arrow_rows(path)
    if file_format == "json":
        return json_entries(path, content)
    if file_format == "jsonl":
        # Not splitlines(): JSON strings may hold the other line separators of Unicode.
        return json_lines(content.split("\n"))
    return table_rows(content, file_format, has_names, quotes)


def table_rows(
    text: str,
    file_format: str,
    has_names: Callable[[Sequence[str]], bool] = lambda first: True,
    quotes: bool | None = None,
) -> Rows:
    r"""Read a table by its columns: by their names, or by their numbers where no row names them.

    pandas would give a short row empty texts in silence, and no numbers of lines.

    Parameters
    ----------
    text
        What the file holds, with Unix line ends.
    file_format
        ``"csv"``, also with semicolons between its columns, or ``"tsv"``.
    has_names
        Whether a first row names the columns.
    quotes
        Whether ``"`` quotes fields; by default in CSV and not in TSV.

    Examples
    --------
    >>> list(table_rows("a,b\nNA,007\nx\n", "csv"))
    [(2, {'a': 'NA', 'b': '007'}), (3, ArgumentError('it has 1 fields instead of 2'))]
    """
    head = text.partition("\n")[0]
    # Not those of a sentence.
    semicolons = ";" in head and "," not in head and "; " not in head
    separator = ";" if semicolons else ","
    if file_format == "tsv":
        separator = "\t"
    names: Sequence[Any] = ()
    for line, fields in _fields(text.split("\n"), separator, quotes):
        if isinstance(fields, ArgumentError):
            yield line, fields
            continue
        if not names:
            names = range(len(fields))
            if has_names(fields):
                names = fields
                continue
        if len(fields) != len(names):
            yield (
                line,
                ArgumentError(f"it has {len(fields)} fields instead of {len(names)}"),
            )
        else:
            yield line, dict(zip(names, fields, strict=True))


def _fields(lines: list[str], separator: str, quotes: bool | None) -> Rows:
    quoted = separator != "\t" if quotes is None else quotes
    done = 0
    while done < len(lines):
        begun = done
        reader = csv.reader(
            (f"{line}\n" for line in lines[begun:]),  # quotes may hold line ends
            delimiter=separator,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            strict=True,
        )
        try:
            for fields in reader:
                first = done + 1
                done = begun + reader.line_num
                if any(value.strip() for value in fields):
                    yield first, fields
        except csv.Error as error:
            is_open = "end of data" in str(error)
            yield (
                done + 1,
                ArgumentError("a quote is not closed" if is_open else str(error)),
            )
            # The quote may have swallowed whole rows: go on behind its own line.
            done += 1


def json_lines(lines: Iterable[str]) -> Rows:
    """Read a value of JSON in each line; a line without text is left out.

    Examples
    --------
    >>> list(json_lines(['{"text": "a"}', "", "[1]"]))
    [(1, {'text': 'a'}), (3, [1])]
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _parsed(line)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        return ArgumentError(f"it is not JSON ({getattr(error, 'msg', error)})")


def json_entries(path: Path, text: str) -> Rows:
    """Read a list of JSON, or the only list that an object holds, such as ``{"data": [...]}``.

    Raises
    ------
    ArgumentError
        If it is neither.
    """
    values = _parsed(text)
    if isinstance(values, ArgumentError):
        raise ArgumentError(f"{path} is not JSON: {values}.")
    lists = [values]
    if isinstance(values, dict):
        lists = [value for value in values.values() if isinstance(value, list)]
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise ArgumentError(f"{path} must hold a list; it holds {kind_of(values)}.")
    yield from enumerate(lists[0], 1)


def kind_of(value: object) -> str:
    """Return what JSON calls a value."""
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), f"the value {value!r}")


def arrow_rows(path: Path) -> Rows:
    """Read a Parquet or an Arrow file, as `save_to_disk` of datasets writes it.

    Raises
    ------
    ArgumentError
        If pyarrow is not installed, or cannot read the file.
    """
    try:
        # pandas reads no stream, and makes arrays of conversations.
        from pyarrow import ArrowException, ipc, memory_map, parquet
    except ImportError:
        raise ArgumentError(
            f"{path} is read with pyarrow, which is not installed: pip install pyarrow."
        ) from None
    try:
        if path.suffix.lower() == ".parquet":
            table = parquet.read_table(path)
        else:
            stored = memory_map(str(path))
            is_file = stored.read(6) == b"ARROW1"  # else a stream
            stored.seek(0)
            table = (ipc.open_file if is_file else ipc.open_stream)(stored).read_all()
    except (OSError, ArrowException) as error:
        kind = path.suffix[1:].title()
        why = str(error).split("\n")[0]
        raise ArgumentError(f"{path} is not readable as {kind}: {why}") from None
    yield from enumerate(table.to_pylist())
