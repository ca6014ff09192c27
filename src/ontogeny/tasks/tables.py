"""Labelled texts from local files: tables, JSON, Parquet, plain lines."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, check_choice, suggestion
from .columns import TEXT_NAMES
from .decoding import read_text
from .labelled import LabelledTexts, as_labels
from .records import named, some_of
from .rows import BINARY, COUNTED, FORMATS, Rows, read_rows

Column: TypeAlias = str | int
_FORMATS = (*dict.fromkeys(FORMATS.values()), "lines", "label-text", "cola")
# Usual names of a column of classes.
LABEL_NAMES = (
    "label",
    "labels",
    "class",
    "category",
    "target",
    "sentiment",
    "acceptability",
)
_NO_COLUMNS = ("lines", "label-text")
_NO_OBJECT = "it is not an object"


class BrokenLabelsError(ArgumentError):
    """Rows of a table with a column of labels are broken."""


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
        ``"tsv"``, ``"csv"``, ``"jsonl"``, ``"json"`` (a list), ``"parquet"``, ``"arrow"``;
        ``"lines"``: one text a line, no labels; ``"label-text"``: a label, a blank, a text;
        ``"cola"``: the four columns of the Corpus of Linguistic Acceptability. By default from
        the suffix, and ``"lines"`` for any other.
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
    if document is not None and (
        isinstance(path, Mapping) or file_format in _NO_COLUMNS
    ):
        raise ArgumentError(
            "document names a column, which files of plain lines do not have."
        )
    if isinstance(path, Mapping):
        return _one_a_class(path, encoding, on_error)
    file = Path(path).expanduser()
    kind = (
        FORMATS.get(file.suffix.lower(), "lines")
        if file_format is None
        else file_format
    )
    check_choice("file_format", kind, _FORMATS)
    if document is not None and kind in _NO_COLUMNS:
        raise ArgumentError(f"document names a column, which {file} does not have.")
    if kind == "cola":
        text = 3 if text is None else text
        label = 1 if label is None else label
    rows = _Rows(str(file), on_error, text, label, document, COUNTED.get(kind, "line"))
    content = "" if kind in BINARY else read_text(file, encoding)
    if kind == "lines":
        rows.read_lines(content.split("\n"))
    elif kind == "label-text":
        rows.read_label_text(content.split("\n"))
    else:
        kind = "tsv" if kind == "cola" else kind
        rows.read_columns(read_rows(file, kind, content, rows.has_names, quotes))
    return rows.result()


def _one_a_class(
    files: Mapping[Any, str | PathLike[str]], encoding: str, on_error: str
) -> LabelledTexts:
    if not files:
        raise ArgumentError("path must name at least one file for a label; got none.")
    texts: list[str] = []
    labels: list[Any] = []
    sources: list[str] = []
    skipped: list[str] = []
    for label, file in files.items():
        part = read_labelled(
            file, file_format="lines", encoding=encoding, on_error=on_error
        )
        texts += part.texts
        labels += [label for _ in part.texts]
        sources.append(part.source)
        skipped += part.skipped
    return LabelledTexts(
        tuple(texts), as_labels(labels), ", ".join(sources), tuple(skipped)
    )


@dataclass
class _Rows:
    """Collects texts and labels, and what was wrong by line number."""

    source: str
    on_error: str
    text: Column | None
    label: Column | None
    document: Column | None
    counted: str
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
        elif self.labelled and (
            label is None or isinstance(label, list | dict) or label != label
        ):
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
        self.broken.append(f"{self.counted} {line}: {reason}")

    def result(self) -> LabelledTexts:
        if self.broken and self.on_error == "raise":
            error = BrokenLabelsError if self.labelled else ArgumentError
            raise error(
                f"{self.source} has {len(self.broken)} broken rows: {some_of(self.broken, 5)}. "
                "on_error='skip' (--set inputs.on_error=skip) leaves them out."
            )
        labels = as_labels(self.labels) if self.labelled and self.labels else None
        documents = (
            np.array(self.documents)
            if self.document is not None and self.texts
            else None
        )
        return LabelledTexts(
            tuple(self.texts), labels, self.source, tuple(self.broken), documents
        )

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

    def read_columns(self, rows: Rows) -> None:
        there = list(rows)
        first = next((row for _, row in there if isinstance(row, dict)), {})
        names = list(first)
        text: Column | None = None
        label: Column | None = None
        if first and names == list(range(len(names))):
            text, label = self._numbers(names, first)
        elif first:
            text, label = self._columns(names)
        self.labelled = label is not None
        wanted = [name for name in (text, label, self.document) if name is not None]
        tags = {
            str(row.get(label)).strip() for _, row in there if isinstance(row, dict)
        }
        for number, row in there:
            if not isinstance(row, dict):
                self.bad(
                    number, str(row) if isinstance(row, ArgumentError) else _NO_OBJECT
                )
            elif missing := [name for name in wanted if name not in row]:
                self.bad(number, f"it has no field {missing[0]!r}")
            elif self.labelled and _swallows(row, text, label, tags):
                self.bad(
                    number,
                    "its quoted text holds whole rows, so a quote may not be closed",
                )
            else:
                self.add(number, row[text], row.get(label), row.get(self.document))

    def has_names(self, first: Sequence[str]) -> bool:
        """Return whether the first row names the columns."""
        columns = [column for _, column in self._given() if column is not None]
        if columns:
            return any(isinstance(column, str) for column in columns)
        return any(name.strip().lower() in TEXT_NAMES for name in first)

    def _numbers(
        self, numbers: list[int], first: Mapping[int, str]
    ) -> tuple[int, int | None]:
        """Return the numbers of the text and the label column of a file without names."""
        if self.text is None:
            raise ArgumentError(
                f"{self.source}: the first row names no text column ({', '.join(TEXT_NAMES)}); "
                f"give text= and label= as column numbers from 0. It reads {list(first.values())}."
            )
        for name, column in self._given():
            if column is not None and column not in numbers:
                raise ArgumentError(
                    f"{self.source}: {name}={column} is no column; rows have {len(numbers)}."
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
        return str(text_column), None if other is None else str(other)


def _swallows(row: Mapping[Any, Any], text: Any, label: Any, tags: set[str]) -> bool:
    """Return whether a line inside a quoted text is itself a row with one of the labels.

    The quote of a broken row can be closed by that of a later one; the rows between them would
    then be lost in silence.
    """
    if not isinstance(row[text], str):
        return False
    for line in row[text].split("\n")[1:]:
        cells = next(csv.reader([line]), [])
        if len(cells) == len(row) and cells[list(row).index(label)].strip() in tags:
            return True
    return False
