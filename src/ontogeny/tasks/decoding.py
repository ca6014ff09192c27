"""Text files as bytes: their encoding, and what is no text."""

from __future__ import annotations

import codecs
from pathlib import Path

from ..errors import ArgumentError

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
