"""Texts of the user's own, from files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, check_choice
from ..inputs.conversations import is_conversation, is_prompted
from .columns import read_columns
from .decoding import read_text
from .labelled import LabelledTexts
from .plain import UNITS, WORDS, cut, form_of
from .rows import BINARY, FORMATS
from .split_column import ALL, SPLITS

Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]

_PLAIN = (".txt", ".md", ".rst", ".text")
_OF_FOLDERS = (*_PLAIN, ".json", ".jsonl")
_SUFFIXES = (*_PLAIN, *FORMATS)
# What datasets writes beside the tables of save_to_disk.
_BESIDE = re.compile(
    r"(?:dataset_info|dataset_dict|state)\.json|(?:cache-.*|indices)\.arrow"
)
_WIKI_TITLE = re.compile(r"^(?=[^\S\n]*=[^\S\n]*[^=\s].*=[^\S\n]*$)", re.MULTILINE)


def text_files(
    paths: Paths,
    *,
    unit: str = "auto",
    field: str | int | None = None,
    encoding: str = "utf-8",
) -> list[Any]:
    r"""Read texts from files, folders and globs, as they stand there.

    ``.json``, ``.jsonl``, ``.csv``, ``.tsv``, ``.parquet`` and ``.arrow`` (``save_to_disk`` of
    datasets) hold a text in each row: a string, or what stands in the column `field`; a
    conversation is a list of messages. Every other file is plain text: its lines of the form
    ``= Title =`` (the headings of WikiText) are dropped and the rest is cut into `unit`. Empty
    texts are left out. The order is that of the paths, in a folder or glob by name; a file named
    twice is read once.

    Parameters
    ----------
    paths
        One or several of: a file, a folder (its text files, also in folders below), a glob such
        as ``"texts/**/*.txt"``.
    unit
        What one text is: ``"line"`` (such as WikiText, without white space at its ends),
        ``"paragraph"`` (between blank lines), ``"document"`` (between marks such as
        ``<|endoftext|>``), ``"file"``; ``"auto"`` recognises which.
    field
        The column of the texts by name, or by number from 0 where no row names them. None takes
        ``messages`` if it holds conversations, a column of a usual name (``text``, ``sentence``,
        ``content``, ...), or the only one of words.
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
    >>> _ = (folder / "wiki.txt").write_text(
    ...     " = Lobster = \n \n A crustacean .\n It swims .\n"
    ... )
    >>> text_files(folder / "*.txt", unit="line")
    ['A crustacean .', 'It swims .']
    """
    return list(document_files(paths, unit=unit, field=field, encoding=encoding).texts)


def document_files(
    paths: Paths,
    *,
    documents: str = "file",
    unit: str = "auto",
    field: str | int | None = None,
    encoding: str = "utf-8",
    split: str = "",
) -> LabelledTexts:
    r"""Read texts as `text_files` does, with the document that each comes from, and their form.

    Parameters
    ----------
    paths, unit, field, encoding
        As in `text_files`.
    documents
        What a document is: a ``"file"``, or an ``"article"``, which begins at a heading of the form
        ``= Title =`` (WikiText).
    split
        ``"training"`` or ``"held-out"``: only rows of tables whose column ``split`` says so, such
        as ``train`` and ``test``.

    Raises
    ------
    ArgumentError
        As in `text_files`, or if a row names no set, or plain text is asked for one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "wiki.txt"
    >>> _ = file.write_text(
    ...     " = Lobster = \n \n A crustacean .\n \n = Oak = \n \n A tree .\n"
    ... )
    >>> articles = document_files(file, documents="article")
    >>> articles.documents.tolist(), articles.form
    ([0, 1], 'one a line, as recognised (inputs.unit)')
    """
    check_choice("unit", unit, UNITS)
    check_choice("documents", documents, ("file", "article"))
    check_choice("split", split, ("", *SPLITS))
    contents = {path: content_of(path, encoding) for path in files_of(paths)}
    plain = [text for path, text in contents.items() if not _is_table(path)]
    unit, form = _form(plain, unit) if plain else (unit, "")
    forms = [form] if plain else []
    grouped: list[list[Any]] = []
    for path, content in contents.items():
        if _is_table(path):
            texts, form = _of_table(path, content, field, split)
            grouped.append(texts)
            forms.append(form)
        elif split not in ("", ALL):
            raise ArgumentError(
                f"{path} is plain text, which has no column 'split'; got split={split!r}."
            )
        else:
            articles = [content]
            if documents == "article":
                articles = _WIKI_TITLE.split(content)
            grouped += [cut(article, unit) for article in articles]
    grouped = [texts for texts in grouped if texts]
    if not grouped:
        raise ArgumentError(f"paths {_listed(paths)} hold no text.")
    number = np.repeat(np.arange(len(grouped)), [len(texts) for texts in grouped])
    flat = tuple(chain.from_iterable(grouped))
    return LabelledTexts(
        flat, None, "files", (), number, " and ".join(dict.fromkeys(forms))
    )


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in FORMATS


def content_of(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a file; of a binary one, which its reader opens, nothing."""
    is_binary = FORMATS.get(path.suffix.lower()) in BINARY
    return "" if is_binary else read_text(path, encoding)


def _form(plain: Sequence[str], unit: str) -> tuple[str, str]:
    """Return what one text of plain files is, and how that is said."""
    found = form_of(plain) if unit == "auto" else unit
    are_lines = found == "line" and len(plain) > 1
    if are_lines and not any("\n" in text.strip() for text in plain):
        return found, WORDS["file"]
    is_guess = unit == "auto" and found != "file"
    return found, WORDS[found] + (", as recognised (inputs.unit)" if is_guess else "")


def _of_table(
    path: Path, content: str, field: str | int | None, split: str
) -> tuple[list[Any], str]:
    """Return the texts of a table that hold something, and how their form is said."""
    texts, column = read_columns(path, content, field, split)
    form = f"of the column {column!r}" if column else "one an entry"
    if any(map(is_conversation, texts)):
        form = "conversations, whose answers are what is predicted"
    elif any(map(is_prompted, texts)):
        form = f"of the columns {column}, put together as they stand"
    if split not in ("", ALL):
        form += f", rows that are {split}"
    return [text for text in texts if holds_text(text)], form


def holds_text(text: Any) -> bool:
    """Return whether a row's text is read: a conversation or a prompt, or no empty text."""
    return not isinstance(text, str) or bool(text.strip())


def files_of(paths: Paths) -> list[Path]:
    """Return the files that paths name, those of folders and globs by name, each once."""
    path_list = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not path_list:
        raise ArgumentError(
            "paths must name at least one file, folder or glob; got none."
        )
    files = chain.from_iterable(_matches(Path(path)) for path in path_list)
    return list(dict.fromkeys(files))


def _matches(path: Path) -> list[Path]:
    path = path.expanduser()
    if path.is_file():  # also a name with brackets in it, which a glob would misread
        return [path]
    if path.is_dir():
        readable = sorted(p for p in path.rglob("*") if p.suffix.lower() in _SUFFIXES)
        if any(p.suffix == ".arrow" for p in readable):
            readable = [p for p in readable if not _BESIDE.fullmatch(p.name)]
        texts = [p for p in readable if p.suffix.lower() in _OF_FOLDERS]
        files = texts or readable  # beside texts, tables say something about them
        what = f"no file that ends in {', '.join(_SUFFIXES)}"
    else:
        files = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        what = "no file"
    files = [p for p in files if p.is_file()]
    if not files:
        raise ArgumentError(f"paths: {str(path)!r} matches {what}.")
    return files


def _listed(paths: Paths) -> str:
    path_list: Iterable[object] = (
        [paths] if isinstance(paths, str | PathLike) else paths
    )
    return ", ".join(repr(str(path)) for path in path_list)
