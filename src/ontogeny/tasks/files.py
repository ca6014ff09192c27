"""Texts of the user's own, from files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, check_choice
from .corpus import paragraphs
from .labelled import LabelledTexts

Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]

_PLAIN = (".txt", ".md", ".rst", ".text")
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_SUFFIXES = (*_PLAIN, ".json", ".jsonl")
_WIKI_TITLE = re.compile(r"^(?=[^\S\n]*=[^\S\n]*[^=\s].*=[^\S\n]*$)", re.MULTILINE)
_WIKI_HEADING = re.compile(r"^[^\S\n]*=.*=[^\S\n]*$", re.MULTILINE)


def text_files(
    paths: Paths,
    *,
    unit: str = "paragraph",
    field: str = "text",
    encoding: str = "utf-8",
) -> list[str]:
    r"""Read texts from files, folders and globs.

    ``.json`` holds a list, ``.jsonl`` one value a line; a value is a string or an object whose
    `field` is a string. Every other file is plain text: its lines of the form ``= Title =`` (the
    headings of WikiText) are dropped and the rest is cut into `unit`. Empty texts are left out.
    The order is that of the paths, in a folder or glob by name; a file named twice is read once.

    Parameters
    ----------
    paths
        One or several of: a file, a folder (its text files, also in folders below), a glob such
        as ``"texts/**/*.txt"``.
    unit
        ``"paragraph"`` (separated by blank lines, each put on one line), ``"line"`` (for files with
        one text a line, such as WikiText) or ``"file"``.
    field
        The key of the text where JSON values are objects.
    encoding
        Of files without a byte-order mark, which goes before it and is dropped.

    Raises
    ------
    ArgumentError
        If a path matches no file, a file is not what its name says (the message names the file
        and the line), or all files together hold no text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "wiki.txt").write_text(" = Lobster = \n \n A lobster is\n a crustacean .\n")
    >>> text_files(folder / "*.txt")
    ['A lobster is a crustacean .']
    """
    return list(document_files(paths, unit=unit, field=field, encoding=encoding).texts)


def document_files(
    paths: Paths,
    *,
    documents: str = "file",
    unit: str = "paragraph",
    field: str = "text",
    encoding: str = "utf-8",
) -> LabelledTexts:
    r"""Read texts as `text_files` does, with the document that each comes from.

    Parameters
    ----------
    paths, unit, field, encoding
        As in `text_files`.
    documents
        What a document is: a ``"file"``, or an ``"article"``, which begins at a heading of the form
        ``= Title =`` (WikiText).

    Raises
    ------
    ArgumentError
        As in `text_files`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "wiki.txt"
    >>> _ = file.write_text(" = Lobster = \n \n A crustacean .\n \n = Oak = \n \n A tree .\n")
    >>> document_files(file, documents="article", unit="line").documents.tolist()
    [0, 1]
    """
    check_choice("unit", unit, ("paragraph", "line", "file"))
    check_choice("documents", documents, ("file", "article"))
    grouped = [
        [text for text in texts if text]
        for path in _files(paths)
        for texts in _documents(path, documents, unit, field, encoding)
    ]
    grouped = [texts for texts in grouped if texts]
    if not grouped:
        raise ArgumentError(f"paths {_shown(paths)} hold no text.")
    number = np.repeat(np.arange(len(grouped)), [len(texts) for texts in grouped])
    return LabelledTexts(tuple(t for texts in grouped for t in texts), None, "files", (), number)


def _documents(
    path: Path, documents: str, unit: str, field: str, encoding: str
) -> Iterator[list[str]]:
    plain = path.suffix.lower() not in (".json", ".jsonl")
    if documents == "file" or not plain:
        yield _read(path, unit, field, encoding)
        return
    content = read_text(path, encoding)
    for article in _WIKI_TITLE.split(content):
        yield _cut(article, unit)


def _files(paths: Paths) -> list[Path]:
    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not given:
        raise ArgumentError("paths must name at least one file, folder or glob; got none.")
    return list(dict.fromkeys(file for path in given for file in _matches(Path(path))))


def _matches(path: Path) -> list[Path]:
    path = path.expanduser()
    if path.is_file():  # also a name with brackets in it, which a glob would misread
        return [path]
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in _SUFFIXES)
        wanted = f"no file that ends in {', '.join(_SUFFIXES)}"
    else:
        files = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        wanted = "no file"
    files = [p for p in files if p.is_file()]
    if not files:
        raise ArgumentError(f"paths: {str(path)!r} matches {wanted}.")
    return files


def _read(path: Path, unit: str, field: str, encoding: str) -> list[str]:
    content = read_text(path, encoding)
    if path.suffix.lower() == ".json":
        return list(_from_json(path, content, field))
    if path.suffix.lower() == ".jsonl":
        return list(_from_json_lines(path, content, field))
    return _cut(content, unit)


def _cut(content: str, unit: str) -> list[str]:
    content = _WIKI_HEADING.sub("", content)
    if unit == "line":
        return [line.strip() for line in content.splitlines()]
    if unit == "file":
        return [content.strip()]
    return paragraphs(content)


def read_text(path: Path, encoding: str) -> str:
    """Return the content of a text file with Unix line ends and without a byte-order mark.

    Raises
    ------
    ArgumentError
        If it cannot be read; where bytes are no text, the message names their line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}.") from None
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), encoding)
    try:
        decoded = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ArgumentError(
            f"{path}, line {line} is not {encoding} text: byte {error.start} is "
            f"0x{content[error.start]:02x}; name its encoding, such as encoding='cp1252'."
        ) from None
    except LookupError:
        raise ArgumentError(f"encoding {encoding!r} is not known.") from None
    return decoded.replace("\r\n", "\n").replace("\r", "\n")


def _from_json(path: Path, content: str, field: str) -> Iterator[str]:
    values = _parse(str(path), content)
    if not isinstance(values, list):
        raise ArgumentError(f"{path} must hold a list; it holds {_kind(values)}.")
    for i, value in enumerate(values):
        yield _text(f"{path}, entry {i + 1}", value, field)


def _from_json_lines(path: Path, content: str, field: str) -> Iterator[str]:
    # Not splitlines(): JSON strings may hold the other line separators of Unicode.
    for i, line in enumerate(content.split("\n")):
        if line.strip():
            where = f"{path}, line {i + 1}"
            yield _text(where, _parse(where, line), field)


def _parse(where: str, content: str) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"{where} is not JSON: {error}.") from None


def _text(where: str, value: object, field: str) -> str:
    if isinstance(value, dict):
        if field not in value:
            raise ArgumentError(f"{where} has no field {field!r}; it has {sorted(value)}.")
        value = value[field]
    if not isinstance(value, str):
        raise ArgumentError(f"{where} must be a string; it is {_kind(value)}.")
    return value.strip()


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), f"the value {value!r}")


def _shown(paths: Paths) -> str:
    given: Iterable[object] = [paths] if isinstance(paths, str | PathLike) else paths
    return ", ".join(repr(str(path)) for path in given)
