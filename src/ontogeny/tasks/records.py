"""Examples in files of the user's: JSON lines or tables, a record each, recognised by fields."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from .decoding import read_text
from .rows import BINARY, FORMATS, Rows, json_lines, read_rows

GROUP_FIELDS = ("group", "paradigm", "uid", "category", "phenomenon", "subject")


@dataclass(frozen=True, slots=True)
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
        return cls(
            tuple(space + answer for answer in answers), (prompt,) * len(answers), *rest
        )


def read_records(path: str | Path) -> Rows:
    r"""Read JSON lines, a JSON list, Parquet, or a table whose first row names its columns.

    Raises
    ------
    ArgumentError
        If the file cannot be read, or is no JSON list where its name says so.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("right,wrong\nhe runs,he run\n")
    >>> list(read_records(file))
    [(2, {'right': 'he runs', 'wrong': 'he run'})]
    """
    path = Path(path).expanduser()
    kind = FORMATS.get(path.suffix.lower(), "jsonl")
    content = "" if kind == "jsonl" or kind in BINARY else read_text(path, "utf-8")
    if kind == "jsonl" or (kind == "json" and not content.lstrip().startswith("[")):
        rows = json_lines(_lines(path))
    else:
        rows = read_rows(path, kind, content, quotes=True)
    for line, row in rows:
        if isinstance(row, dict):
            yield line, {str(name).strip(): value for name, value in row.items()}
        else:
            yield (
                line,
                str(row) if isinstance(row, ArgumentError) else "it is not an object",
            )


def _lines(path: Path) -> Iterator[str]:
    # One at a time: a million of examples need not fit into memory.
    # Not splitlines(): JSON strings may hold the other line separators of Unicode.
    given = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file):
                yield line.decode("utf-8" if number else "utf-8-sig")
                given += 1
    except (OSError, UnicodeDecodeError):
        # It knows other encodings, or says what is wrong.
        yield from read_text(path, "utf-8").split("\n")[given:]


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
    """Return the field that has the first of some usual names, as it stands or else in any case.

    Raises
    ------
    ArgumentError
        If two fields have it in another case than the usual one.

    Examples
    --------
    >>> named(["UID", "Good"], ("right", "good")), named(["Good", "good"], ("good",))
    ('Good', 'good')
    """
    fields = list(fields)
    for name in names:
        alike = [field for field in fields if field.lower() == name]
        if len(alike) > 1 and name not in alike:
            raise ArgumentError(
                f"it has two fields {name!r}: {', '.join(map(repr, alike))}"
            )
        if alike:
            return name if name in alike else alike[0]
    return None


def group_of(record: Mapping[str, Any], stem: str) -> str:
    """Return the group of a record: that of its field, else the name of its file."""
    field = named(record, GROUP_FIELDS)
    value = "" if field is None or record[field] is None else str(record[field]).strip()
    return sys.intern(value or stem)


def group_field(
    records: Iterable[tuple[int, Any]], used: Sequence[str] = ()
) -> str | None:
    """Return the field of records that says their group, None where none does.

    One of the usual names, else the first of texts that are not all different, beside the fields
    that are `used`; without any of these only the usual names.

    Examples
    --------
    >>> rows = [{"good": f"he {v}", "kind": k} for v, k in zip("abcd", "xxyy")]
    >>> group_field(enumerate(rows), ["good"]), group_field(enumerate(rows))
    ('kind', None)
    """
    rows = [record for _, record in records if isinstance(record, dict)]
    fields = list(rows[0]) if rows else []
    if not used or named(fields, GROUP_FIELDS) is not None:
        return named(fields, GROUP_FIELDS)
    others = [field for field in fields if field.lower() not in used]
    for field in others:
        values = [row.get(field) for row in rows]
        are_texts = all(isinstance(value, str) and value.strip() for value in values)
        if are_texts and 2 <= len({*values}) <= len(values) // 2:
            return field
    return None


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
    records: Rows | Iterable[tuple[int, Any]],
    name: str,
    make: Callable[[Mapping[str, Any], str, str], Any],
    one: str = "example",
    stem: str = "",
) -> tuple[list[Any], list[str]]:
    """Return what `make` makes of the records of a file, and in a line each what it refuses.

    Examples
    --------
    >>> records = [(2, {"x": "1"}), (3, {})]
    >>> read_examples(
    ...     records, "a.csv", lambda record, stem, where: text_of(record, "x", "x")
    ... )
    (['1'], ["a.csv, line 3: it has no field 'x'"])
    """
    examples = []
    left_out = []
    for line, record in records:
        where = f"{name}, line {line}"
        try:
            if not isinstance(record, dict):
                raise ArgumentError(record)
            examples.append(make(record, stem or Path(name).stem, where))
        except ArgumentError as error:
            left_out.append(f"{where}: {error}")
    if not examples and not left_out:
        left_out.append(f"{name} holds no {one}")
    return examples, left_out


def some_of(problems: Sequence[str], most: int = 3) -> str:
    """Return a few of many problems in one line.

    Examples
    --------
    >>> some_of(["a", "b", "c", "d", "e"])
    'a; b; c; and 2 more'
    """
    more = len(problems) - most
    return "; ".join(problems[:most]) + (f"; and {more:,} more" if more > 0 else "")
