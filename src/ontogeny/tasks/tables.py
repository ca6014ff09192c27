"""Labelled texts from local files: TSV, CSV, JSON lines, plain lines."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, check_choice, suggestion
from .columns import TEXT_NAMES, json_lines
from .files import read_text
from .labelled import LabelledTexts, as_labels
from .records import named, some_of

Column: TypeAlias = str | int
FORMATS = ("tsv", "csv", "jsonl", "lines", "label-text", "cola")
_SUFFIXES = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# Usual names of a column of classes.
LABEL_NAMES = ("label", "labels", "class", "category", "target", "sentiment", "acceptability")
_NO_COLUMNS = ("lines", "label-text")


def read_labelled(
    path: str | PathLike[str] | Mapping[Any, str | PathLike[str]],
    *,
    text: Column | None = None,
    label: Column | None = None,
    file_format: str | None = None,
    encoding: str = "utf-8",
    quotes: bool | None = None,
    on_error: str = "raise",
    document: Column | None = None,
) -> LabelledTexts:
    r"""Read texts and their labels from a local file.

    Parameters
    ----------
    path
        A file, or ``{label: file}`` for data that keeps one class a file (Rotten Tomatoes); the
        files of a mapping are read as ``"lines"``.
    text, label
        Columns by name (the first row then names them) or by number from 0 (the file has no such
        row). By default found by their usual names (``sentence``, ``text``, ...; ``label``,
        ``class``, ...) in a first row that has one; a file without a label column has no labels.
    file_format
        ``"tsv"``, ``"csv"``, ``"jsonl"``; ``"lines"``: one text a line, no labels;
        ``"label-text"``: a label, a blank, a text; ``"cola"``: the four columns of the Corpus of
        Linguistic Acceptability. By default from the suffix, and ``"lines"`` for any other.
    encoding
        Where there is no byte-order mark, which goes before it and is dropped.
    quotes
        Whether ``"`` quotes fields; by default in CSV and not in TSV.
    on_error
        ``"raise"``: broken rows are an error that names their lines; ``"skip"``: they are left
        out and listed in ``.skipped``.
    document
        Column of the document that each text comes from, by name or number; none by default.

    Raises
    ------
    ArgumentError
        If the file cannot be read, a column is missing, or rows are broken.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "reviews.csv"
    >>> _ = file.write_text('sentence,label\n"good, ""really""!",1\nso so,0\n')
    >>> data = read_labelled(file)
    >>> data.texts, data.labels.tolist()
    (('good, "really"!', 'so so'), [1, 0])
    """
    check_choice("on_error", on_error, ("raise", "skip"))
    if document is not None and (isinstance(path, Mapping) or file_format in _NO_COLUMNS):
        raise ArgumentError("document names a column, which files of plain lines do not have.")
    if isinstance(path, Mapping):
        if not path:
            raise ArgumentError("path must name at least one file for a label; got none.")
        parts = [
            read_labelled(file, file_format="lines", encoding=encoding, on_error=on_error)
            for file in path.values()
        ]
        return LabelledTexts(
            tuple(t for part in parts for t in part.texts),
            as_labels([name for name, part in zip(path, parts, strict=True) for _ in part.texts]),
            ", ".join(part.source for part in parts),
            tuple(line for part in parts for line in part.skipped),
        )
    file = Path(path).expanduser()
    kind = _SUFFIXES.get(file.suffix.lower(), "lines") if file_format is None else file_format
    check_choice("file_format", kind, FORMATS)
    # Not splitlines(): sentences may hold the other line separators of Unicode.
    lines = read_text(file, encoding).split("\n")
    if document is not None and kind in _NO_COLUMNS:
        raise ArgumentError(f"document names a column, which {file} does not have.")
    if kind == "cola":
        text, label = (3 if text is None else text), (1 if label is None else label)
    rows = _Rows(str(file), on_error, text, label, document)
    if kind == "lines":
        rows.read_lines(lines)
    elif kind == "label-text":
        rows.read_label_text(lines)
    elif kind == "jsonl":
        rows.read_json(lines)
    else:
        quoted = kind == "csv" if quotes is None else quotes
        rows.read_table(lines, "," if kind == "csv" else "\t", quoted)
    return rows.result()


@dataclass
class _Rows:
    """Collects texts and labels, and what was wrong by line number."""

    source: str
    on_error: str
    text: Column | None
    label: Column | None
    document: Column | None
    texts: list[str] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    labelled: bool = True

    def add(self, line: int, text: Any, label: Any, document: Any = None) -> None:
        if not isinstance(text, str):
            self.bad(line, f"its text is {type(text).__name__}, not a string")
        elif not text.strip():
            self.bad(line, "its text is empty")
        elif self.labelled and (label is None or isinstance(label, list | dict) or label != label):
            self.bad(line, f"its label is {label!r}")
        elif self.labelled and isinstance(label, str) and not label.strip():
            self.bad(line, "its label is empty")
        elif self.document is not None and not isinstance(document, str | int):
            self.bad(line, f"its document is {document!r}")
        elif self.document is not None and not str(document).strip():
            self.bad(line, "its document is empty")
        else:
            self.documents.append(str(document).strip())
            self.texts.append(text.strip())
            self.labels.append(label.strip() if isinstance(label, str) else label)

    def bad(self, line: int, reason: str) -> None:
        self.broken.append(f"line {line}: {reason}")

    def result(self) -> LabelledTexts:
        if self.broken and self.on_error == "raise":
            raise ArgumentError(
                f"{self.source} has {len(self.broken)} broken rows: {some_of(self.broken, 5)}. "
                "on_error='skip' leaves them out."
            )
        labels = as_labels(self.labels) if self.labelled and self.labels else None
        documents = np.array(self.documents) if self.document is not None and self.texts else None
        return LabelledTexts(tuple(self.texts), labels, self.source, tuple(self.broken), documents)

    def read_lines(self, lines: list[str]) -> None:
        self.labelled = False
        for line in lines:
            if line.strip():
                self.add(0, line, None)

    def read_label_text(self, lines: list[str]) -> None:
        for number, line in enumerate(lines, 1):
            if line.strip():
                label, *rest = line.split(maxsplit=1)
                self.add(number, rest[0] if rest else "", label)

    def read_json(self, lines: list[str]) -> None:
        text: str | None = None
        label: str | None = None
        for number, row in json_lines(lines):
            if not isinstance(row, dict):
                self.bad(number, row)
                continue
            if text is None:  # the first object shows which fields there are
                text, label = self._columns(list(row))
            columns = (text, label, self.document)
            missing = [name for name in columns if name is not None and name not in row]
            if missing:
                self.bad(number, f"it has no field {missing[0]!r}")
            else:
                value = None if label is None else row[label]
                document = None if self.document is None else row[self.document]
                self.add(number, row[text], value, document)

    def read_table(self, lines: list[str], separator: str, quotes: bool) -> None:
        records: Iterator[Any] = self._records(lines, separator, quotes)
        first = next(records, None)
        if first is None:
            return
        header = first[1]
        if self._has_names(header):
            name, other = self._columns(header)
            where, tag = header.index(name), None if other is None else header.index(other)
            doc = None if self.document is None else header.index(self.document)
        else:
            records = itertools.chain([first], records)
            where, tag = self._numbers(header)
            doc = None if self.document is None else int(self.document)
        self.labelled = tag is not None
        rows = list(records)
        tags = {r[tag].strip() for _, r in rows if tag is not None and len(r) == len(header)}
        for number, record in rows:
            if len(record) != len(header):
                self.bad(number, f"it has {len(record)} fields instead of {len(header)}")
            elif tag is not None and _swallows(record[where], separator, len(header), tag, tags):
                self.bad(number, "its quoted text holds whole rows, so a quote may not be closed")
            else:
                label_there = None if tag is None else record[tag]
                self.add(number, record[where], label_there, None if doc is None else record[doc])

    def _records(
        self, lines: list[str], separator: str, quotes: bool
    ) -> Iterator[tuple[int, list[str]]]:
        start = 0  # lines before it are done with
        while start < len(lines):
            reader = csv.reader(
                (f"{line}\n" for line in itertools.islice(lines, start, None)),
                delimiter=separator,
                quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
                strict=True,
            )
            begun = start
            try:
                for record in reader:
                    first, start = start + 1, begun + reader.line_num
                    if any(value.strip() for value in record):
                        yield first, record
            except csv.Error as error:
                reason = "a quote is not closed" if "end of data" in str(error) else str(error)
                self.bad(start + 1, reason)
                start += 1  # the quote may have swallowed whole rows: go on behind its own line

    def _has_names(self, first: list[str]) -> bool:
        """Return whether the first row names the columns."""
        columns = [column for _, column in self._given() if column is not None]
        if columns:
            return any(isinstance(column, str) for column in columns)
        return any(name.strip().lower() in TEXT_NAMES for name in first)

    def _numbers(self, first: list[str]) -> tuple[int, int | None]:
        """Return the numbers of the text and the label column of a file without names."""
        if self.text is None:
            raise ArgumentError(
                f"{self.source}: the first row names no text column ({', '.join(TEXT_NAMES)}); "
                f"give text= and label= as column numbers from 0. It reads {first}."
            )
        for name, column in self._given():
            if column is not None and column not in range(len(first)):
                raise ArgumentError(
                    f"{self.source}: {name}={column} is no column; rows have {len(first)}."
                )
        return int(self.text), None if self.label is None else int(self.label)

    def _given(self) -> list[tuple[str, Column | None]]:
        return [("text", self.text), ("label", self.label), ("document", self.document)]

    def _columns(self, names: list[str]) -> tuple[str, str | None]:
        """Return the names of the text and the label column as the file writes them."""
        written = {name.strip(): name for name in names}
        for argument, column in self._given():
            if column is not None and column not in names:
                raise ArgumentError(
                    f"{self.source} has no column {argument}={column!r}; it has "
                    f"{', '.join(map(repr, names))}.{suggestion(str(column), names)}"
                )
        text_column = self.text or written.get(named(written, TEXT_NAMES) or "")
        if text_column is None:
            raise ArgumentError(
                f"{self.source} has no column of a usual name ({', '.join(TEXT_NAMES)}); name "
                f"one of {', '.join(map(repr, names))} as text=."
            )
        other = self.label or written.get(named(written, LABEL_NAMES) or "")
        self.labelled = other is not None
        return str(text_column), None if other is None else str(other)


def _swallows(text: str, separator: str, fields: int, tag: int, tags: set[str]) -> bool:
    """Return whether a line inside a quoted text is itself a row with one of the labels.

    The quote of a broken row can be closed by that of a later one; the rows between them would
    then be lost in silence.
    """
    for line in text.split("\n")[1:]:
        cells = next(csv.reader([line], delimiter=separator), [])
        if len(cells) == fields and cells[tag].strip() in tags:
            return True
    return False
