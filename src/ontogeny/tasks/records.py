"""Examples in files of the user's: JSON lines or tables, a record each, recognised by fields."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from .files import read_text

TABLES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
GROUP_FIELDS = ("group", "paradigm", "uid", "category", "phenomenon", "subject")
_SHOWN = 3


@dataclass(frozen=True)
class Records:
    """The records of one file: ``(line, fields)`` of each, and lines that hold none, with why."""

    name: str
    records: tuple[tuple[int, Mapping[str, Any]], ...]
    broken: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields of the first record."""
        return tuple(self.records[0][1]) if self.records else ()


@dataclass(frozen=True)
class Example:
    """One example with a right answer.

    Parameters
    ----------
    texts
        What gets a score.
    before
        What stands before each of them and has none.
    right
        Which of them is right.
    group
        What it shows.
    where
        Where it stands.
    """

    texts: tuple[str, ...]
    before: tuple[str, ...]
    right: int
    group: str
    where: str

    @classmethod
    def after(cls, prompt: str, answers: Sequence[str], *rest: Any) -> Example:
        """Return answers after a prompt, with a space between where there is none.

        Examples
        --------
        >>> Example.after("Grass is", ["green", "loud"], 0, "", "").texts
        (' green', ' loud')
        """
        space = " " if prompt and not prompt[-1].isspace() else ""
        return cls(tuple(space + answer for answer in answers), (prompt,) * len(answers), *rest)


def read_records(path: str | Path) -> Records:
    r"""Read JSON lines, a JSON list, or a table whose first row names its columns.

    Raises
    ------
    ArgumentError
        If the file cannot be read, or is no JSON list where its name says so.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("right,wrong\nhe runs,he run\n")
    >>> read_records(file).records
    ((2, {'right': 'he runs', 'wrong': 'he run'}),)
    """
    path = Path(path).expanduser()
    text = read_text(path, "utf-8")
    if path.suffix.lower() in TABLES:
        return _gathered(path, _of_table(text, TABLES[path.suffix.lower()]))
    if path.suffix.lower() == ".json" and text.lstrip().startswith("["):
        return _gathered(path, _of_list(path, text))
    return _gathered(path, _of_lines(text))


def _gathered(path: Path, rows: Iterable[tuple[int, Any]]) -> Records:
    records, broken = [], []
    for line, row in rows:
        if isinstance(row, dict):
            records.append((line, {str(name).strip(): value for name, value in row.items()}))
        else:
            broken.append(f"{path.name}, line {line}: {row}")
    return Records(path.name, tuple(records), tuple(broken))


def _of_lines(text: str) -> Iterator[tuple[int, Any]]:
    # Not splitlines(): JSON strings may hold the other line separators of Unicode.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                yield number, f"it is not JSON ({error.msg})"
                continue
            yield number, row if isinstance(row, dict) else "it is not an object"


def _of_list(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"{path} is not JSON: {error}.") from None
    for number, row in enumerate(rows, 1):
        yield number, row if isinstance(row, dict) else "it is not an object"


def _of_table(text: str, separator: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(text), delimiter=separator)  # quotes may hold line ends
    try:
        for row in reader:
            if None in row or None in row.values():
                yield reader.line_num, "it has another number of fields than the first row"
            else:
                yield reader.line_num, row
    except csv.Error as error:
        yield reader.line_num, f"a quote that begins before it has no end ({error})"


def digest_of(paths: Sequence[str]) -> str:
    """Return a digest of the content of files, with which what was measured of them goes stale.

    Examples
    --------
    >>> digest_of([])
    ''
    """
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        try:
            digest.update(Path(path).expanduser().read_bytes())
        except OSError as error:
            raise ArgumentError(
                f"examples must be files that can be read; {str(path)!r}: {error.strerror}."
            ) from None
    return digest.hexdigest() if paths else ""


def named(fields: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the field that has the first of some usual names, whatever its case.

    Examples
    --------
    >>> named(["UID", "Good"], ("right", "good"))
    'Good'
    """
    by_lower = {field.lower(): field for field in fields}
    return next((by_lower[name] for name in names if name in by_lower), None)


def group_of(record: Mapping[str, Any], stem: str) -> str:
    """Return the group of a record: that of its field, else the name of its file."""
    field = named(record, GROUP_FIELDS)
    value = "" if field is None or record[field] is None else str(record[field]).strip()
    return value or stem


def text_of(record: Mapping[str, Any], field: str | None, what: str) -> str:
    """Return a text of a record.

    Raises
    ------
    ArgumentError
        If there is no such field, or no text in it.
    """
    value = None if field is None else record.get(field)
    if value is None:
        raise ArgumentError(f"it has no field {what!r}")
    if not isinstance(value, str):
        raise ArgumentError(f"its {field!r} is {type(value).__name__}, not a text")
    if not value.strip():
        raise ArgumentError(f"its {field!r} is empty")
    return value


def read_examples(
    records: Records,
    make: Callable[[Mapping[str, Any], str, str], Any],
    one: str = "example",
    stem: str = "",
) -> tuple[list[Any], list[str]]:
    """Return what `make` makes of the records of a file, and in a line each what it refuses.

    Examples
    --------
    >>> records = Records("a.csv", ((2, {"x": "1"}), (3, {})))
    >>> read_examples(records, lambda record, stem, where: text_of(record, "x", "x"))
    (['1'], ["a.csv, line 3: it has no field 'x'"])
    """
    examples, left_out = [], list(records.broken)
    if not records.records and not left_out:
        left_out.append(f"{records.name} holds no {one}")
    for line, record in records.records:
        where = f"{records.name}, line {line}"
        try:
            examples.append(make(record, stem or Path(records.name).stem, where))
        except ArgumentError as error:
            left_out.append(f"{where}: {error}")
    return examples, left_out


def some_of(problems: Sequence[str]) -> str:
    """Return a few of many problems in one line.

    Examples
    --------
    >>> some_of(["a", "b", "c", "d", "e"])
    'a; b; c; and 2 more'
    """
    more = len(problems) - _SHOWN
    return "; ".join(problems[:_SHOWN]) + (f"; and {more:,} more" if more > 0 else "")


@lru_cache(maxsize=4)
def cached_records(path: str, _digest: str) -> Records:
    """Return the records of a file whose content has a digest."""
    return read_records(path)
