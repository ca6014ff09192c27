"""Texts of the user's own, from files, and in which form plain files hold them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, check_choice
from ..inputs.conversations import is_conversation, is_prompted
from .columns import read_columns
from .labelled import LabelledTexts
from .rows import BINARY, FORMATS
from .split_column import ALL, SPLITS

Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]

_PLAIN = (".txt", ".md", ".rst", ".text")
_NO_TEXT = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"%PDF": "PDF",
}
_NO_TEXT |= {b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# Encodings of texts without a mark at their begin, distinguished by the spaces and lines they give.
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_PROBED = 4096  # bytes
_OF_FOLDERS = (*_PLAIN, ".json", ".jsonl")
_SUFFIXES = (*_PLAIN, *FORMATS)
# What datasets writes beside the tables of save_to_disk.
_BESIDE = re.compile(
    r"(?:dataset_info|dataset_dict|state)\.json|(?:cache-.*|indices)\.arrow"
)
_WIKI_TITLE = re.compile(r"^(?=[^\S\n]*=[^\S\n]*[^=\s].*=[^\S\n]*$)", re.MULTILINE)
UNITS = ("auto", "line", "paragraph", "document", "file")
# How the form of texts is said, by unit.
WORDS = {
    "line": "one a line",
    "paragraph": "one a paragraph",
    "document": "one between marks of an end of text",
    "file": "one a file",
}

_WIKI_HEADING = re.compile(r"^[^\S\n]*=.*=[^\S\n]*$\n?", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_END_OF_TEXT = re.compile(
    r"<\|(?:endoftext|end_of_text|eot_id|im_end)\|>|</s>|<eos>|\[EOS\]"
)
_SHORT_FILE = 2000  # characters of a file that is one text
_MANY_FILES = 20
_WRAPPED = 0.7  # of the lines end where the next word would not have gone in
_SENTENCES = 0.8  # of the lines end one, as lines of one pattern do, all of one length
# On average, in stanzas, dialogues and code; more are a list.
_LINES_OF_A_PARAGRAPH = 10
_LONG_LINE = 150  # characters: it is a paragraph already
_NARROW = 40  # characters, at which nobody wraps prose
_ALIKE = 0.9  # of the lines have as many words, as sums, names and sequences have
_EAST_ASIAN = "\u2e80"  # from here on text is wrapped between characters


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
    contents = {
        path: ""
        if FORMATS.get(path.suffix.lower()) in BINARY
        else read_text(path, encoding)
        for path in _files(paths)
    }
    plain = [
        text for path, text in contents.items() if path.suffix.lower() not in FORMATS
    ]
    was_said = unit != "auto"
    unit = form_of(plain) if unit == "auto" and plain else unit
    one_each = (
        unit == "line" and len(plain) > 1 and not any("\n" in t.strip() for t in plain)
    )
    forms = [WORDS["file" if one_each else unit]] if plain else []
    if plain and not was_said and unit != "file" and not one_each:
        forms[0] += ", as recognised (inputs.unit)"
    grouped = []
    for path, content in contents.items():
        if path.suffix.lower() in FORMATS:
            texts, column = read_columns(path, content, field, split)
            forms.append(f"of the column {column!r}" if column else "one an entry")
            if any(is_conversation(text) for text in texts):
                forms[-1] = "conversations, whose answers are what is predicted"
            elif any(is_prompted(text) for text in texts):
                forms[-1] = f"of the columns {column}, put together as they stand"
            grouped.append(
                [text for text in texts if not isinstance(text, str) or text.strip()]
            )
            if split not in ("", ALL):
                forms[-1] += f", rows that are {split}"
        elif split not in ("", ALL):
            raise ArgumentError(
                f"{path} is plain text, which has no column 'split'; got split={split!r}."
            )
        else:
            articles = (
                _WIKI_TITLE.split(content) if documents == "article" else [content]
            )
            grouped += [cut(article, unit) for article in articles]
    grouped = [texts for texts in grouped if texts]
    if not grouped:
        raise ArgumentError(f"paths {_listed(paths)} hold no text.")
    number = np.repeat(np.arange(len(grouped)), [len(texts) for texts in grouped])
    flat = tuple(chain.from_iterable(grouped))
    return LabelledTexts(
        flat, None, "files", (), number, " and ".join(dict.fromkeys(forms))
    )


def _files(paths: Paths) -> list[Path]:
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


def _encoding(path: Path, content: bytes, encoding: str) -> str:
    """Return the encoding of a mark at the begin of a file, else the one that was said.

    Raises
    ------
    ArgumentError
        If the mark is of another encoding than the one that was said; UTF-8 is taken unsaid.
    LookupError
        If that is not known.
    """
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    said = codecs.lookup(encoding).name
    if marked and said != "utf-8" and not said.startswith(marked.removesuffix("-sig")):
        raise ArgumentError(
            f"{path} begins with the mark of {marked}; encoding={encoding} was said: leave it away."
        )
    return marked or encoding


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
    if kind := next(
        (name for mark, name in _NO_TEXT.items() if content.startswith(mark)), ""
    ):
        raise ArgumentError(
            f"{path} is {kind}, no text: unpack it, or save its texts as text, CSV, JSON "
            "lines or Parquet."
        )
    try:
        encoding = _encoding(path, content, encoding)
        decoded = content.decode(encoding)
    except UnicodeDecodeError as error:
        if b"\0" in content:
            raise _holds_zeros(path, content, encoding) from None
        line = content[: error.start].count(b"\n") + 1
        raise ArgumentError(
            f"{path}, line {line} is not {encoding} text: byte {error.start} is "
            f"0x{content[error.start]:02x}; name its encoding, such as encoding='cp1252' "
            "(--set inputs.encoding=cp1252)."
        ) from None
    except LookupError:
        raise ArgumentError(f"encoding {encoding!r} is not known.") from None
    if "\0" in decoded:
        raise _holds_zeros(path, content, encoding)
    return decoded.replace("\r\n", "\n").replace("\r", "\n")


def _holds_zeros(path: Path, content: bytes, read_as: str) -> ArgumentError:
    """Return what zero bytes are of: a wide encoding that reads them as text, or no text."""
    few = content[:_PROBED]
    read = {wide: few.decode(wide, errors="replace") for wide in _WIDE}
    spaces = {
        wide: text.count(" ") + text.count("\n")
        for wide, text in read.items()
        if "\0" not in text and text.count("\ufffd") <= 1
    }
    wide = max(spaces, key=spaces.__getitem__, default="")
    if not wide:
        return ArgumentError(
            f"{path} holds zero bytes, so it is no text: give token ids as .npy, .bin or .pt."
        )
    return ArgumentError(
        f"{path} holds zero bytes, as {wide} does that is read as {read_as}; name its encoding, "
        f"encoding={wide!r} (--set inputs.encoding={wide})."
    )


def _listed(paths: Paths) -> str:
    path_list: Iterable[object] = (
        [paths] if isinstance(paths, str | PathLike) else paths
    )
    return ", ".join(repr(str(path)) for path in path_list)


def form_of(contents: Sequence[str]) -> str:
    r"""Return the unit that the texts of plain files are, as `UNITS` names it.

    Marks of an end of text go before all else. Lines that end where the next word would not have
    gone in are wrapped, and so are parts of a paragraph, unless all are short or have as many
    words; lines of a stanza, of a speech or of code are, where blank lines stand between a few of
    them. Other lines are texts. Many short files are a text each.

    Examples
    --------
    >>> form_of(["A cat sat.\nIt was there all day, and nobody came.\nRain fell.\n"])
    'line'
    >>> form_of(
    ...     ["First:\nHear me.\n\nAll:\nSpeak, speak.\n\nFirst:\nYou are resolved.\n"]
    ... )
    'paragraph'
    >>> form_of(["A tale.\n\nIts end.<|endoftext|>Another."])
    'document'
    """
    contents = [_WIKI_HEADING.sub("", content) for content in contents]
    if any(_END_OF_TEXT.search(content) for content in contents):
        return "document"
    blocks = [list(map(_filled_lines, _parts(content))) for content in contents]
    together = list(chain.from_iterable(blocks))
    lines = list(map(len, chain.from_iterable(together)))
    several = [block for block in together if len(block) > 1]
    if (
        len(contents) >= _MANY_FILES
        and np.median([len(c) for c in contents]) < _SHORT_FILE
    ):
        return "line" if max(map(len, blocks)) <= 1 and not several else "file"
    if not several:
        return "line"
    if _is_wrapped(several):
        return "paragraph" if len(together) > len(contents) else "file"
    few = (
        len(together) > len(contents)
        and len(lines) / len(together) <= _LINES_OF_A_PARAGRAPH
    )
    return "paragraph" if few and np.median(lines) < _LONG_LINE else "line"


def cut(content: str, unit: str) -> list[str]:
    r"""Return the texts of a plain file as they stand in it, white space within them too.

    Headings of WikiText and empty texts are left out, and lines that hold nothing at either end.

    Examples
    --------
    >>> cut("def f():\n    return 1\n\nOne\n", "paragraph")
    ['def f():\n    return 1', 'One']
    """
    content = _WIKI_HEADING.sub("", content)
    if unit == "document":
        parts = _END_OF_TEXT.split(content)
    elif unit == "file":
        parts = [content]
    else:
        parts = content.split("\n") if unit == "line" else _parts(content)
    ended = str.strip if unit == "line" else _without_empty_ends
    return [ended(part) for part in parts if part.strip()]


def _parts(content: str) -> list[str]:
    return [part for part in _BLANK_LINES.split(content) if part.strip()]


def _filled_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _without_empty_ends(text: str) -> str:
    """Return a text without what its ends hold for the file's sake; indentation stays."""
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", text).rstrip()


def _is_wrapped(blocks: Sequence[Sequence[str]]) -> bool:
    """Return whether most lines end where the next word would not have gone in."""
    pairs = list(chain.from_iterable(map(pairwise, blocks)))
    ends = np.array([len(line.rstrip()) for line, _ in pairs])
    words = np.array([len(next_line.split(maxsplit=1)[0]) for _, next_line in pairs])
    width = np.quantile(ends, 0.98)
    lines = list(chain.from_iterable(blocks))
    whole = [line.rstrip("\"')”’ ")[-1:] in tuple(".!?…。") for line in lines]
    if not _NARROW <= width < _LONG_LINE or np.mean(whole) > _SENTENCES:
        return False
    if _are_alike(lines):
        return False
    return bool(np.mean(ends + 1 + words > width) >= _WRAPPED)


def _are_alike(lines: Sequence[str]) -> bool:
    """Return whether lines are of one pattern: nearly all have as many words."""
    _, counts = np.unique([len(line.split()) for line in lines], return_counts=True)
    unspaced = any(character >= _EAST_ASIAN for character in "".join(lines))
    return bool(counts.max() >= _ALIKE * len(lines)) and not unspaced
