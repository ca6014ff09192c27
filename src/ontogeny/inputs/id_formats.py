"""Of which type the numbers of a bare file of token ids are: as said, by a header, or by what fits.

Nothing in such a file says how wide its numbers are. What the user says is taken. Else a header of
a known format counts, and else the one reading whose ids a vocabulary has: where two fit, nothing
is guessed. A text of words with the blank between them as id 0, in 16 bits, is the same bytes as
one of the words alone in 32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, check_choice
from .id_headers import header_of

# Bytes stand as x86 and ARM write them, unless the name ends in -be (big-endian).
DTYPES = {
    "uint16": "<u2",
    "uint32": "<u4",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "|u1",
    "uint16-be": ">u2",
    "uint32-be": ">u4",
    "int32-be": ">i4",
    "int64-be": ">i8",
}
# int32 is uint32 wherever ids are possible.
_GUESSED = ("uint16", "uint32", "int64", "uint16-be", "uint32-be", "int64-be", "uint8")
_LARGEST = 2**20  # ids of a vocabulary
_HALF = 2**16
_BYTE = 2**8
_SPREAD = 1000  # ids of 16 bits that a vocabulary of more than 16 bits has at least
_PIECES = 16  # of a file, that are looked at
_BYTES = 8192  # of a piece; whole numbers of every type
_BITS = 0.5  # by which the upper byte of a number would have to be the more even one
_SHOWN = 6  # ids in a message
_IGNORED = -100  # in labels, what has no loss
_FEWEST = 64  # ids, to call a place always 0


@dataclass(frozen=True)
class Reading:
    """One way to read a file of ids.

    Attributes
    ----------
    dtype
        A key of `DTYPES`.
    words
        How that is known, for messages.
    offset
        Bytes before the first id.
    """

    dtype: str
    words: str
    offset: int = 0

    def mapped(self, path: Path) -> np.ndarray:
        """Return the ids, memory-mapped."""
        return np.memmap(path, dtype=DTYPES[self.dtype], mode="r", offset=self.offset)


class SeveralReadingsError(ArgumentError):
    """A file of ids that can be read as several types.

    Attributes
    ----------
    dtypes
        These types.
    """

    def __init__(self, path: Path, dtypes: Sequence[str]) -> None:
        ways = " and as ".join(_shown(path, dtype) for dtype in dtypes)
        choice = " or ".join(f"--set inputs.dtype={dtype}" for dtype in dtypes)
        super().__init__(f"{path} can be read as {ways}: say which with {choice}.")
        self.dtypes = tuple(dtypes)


def reading_of(
    path: Path,
    dtype: str | None = None,
    vocab_size: int | None = None,
    bound: int | None = None,
) -> Reading:
    """Return how a file of ids is to be read.

    Parameters
    ----------
    path
        A file without anything but ids, or with the header of llm.c or Megatron's index beside it.
    dtype
        What was said; None: found out.
    vocab_size
        Number of ids of the vocabulary, None if unknown.
    bound
        What every id is below, where `vocab_size` is unknown.

    Raises
    ------
    ArgumentError
        If what was said, or what the header says, is not what the file holds; or if none or
        several types fit.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "val.bin"
    >>> np.arange(9, dtype=np.uint16).tofile(file)
    >>> reading_of(file, vocab_size=9).words
    'uint16 (all ids are below 9)'
    """
    if dtype is not None:
        check_choice("dtype", dtype, tuple(DTYPES))
    if not path.stat().st_size:
        raise ArgumentError(f"{path} has 0 bytes, and no token ids.")
    header = header_of(path)
    if header is not None:
        kind, words, offset = header
        if (
            dtype is not None
            and np.dtype(DTYPES[dtype]).itemsize != np.dtype(kind).itemsize
        ):
            raise ArgumentError(
                f"{path} is of {kind}, by {words}; dtype={dtype} was said."
            )
        return Reading(dtype or kind, f"{dtype or kind} by {words}", offset)
    if dtype is not None:
        return _said(path, dtype)
    if _is_text(_looked_at(path)) and (vocab_size or bound or _BYTE) > _BYTE:
        raise ArgumentError(
            f"{path} holds text, not ids: give it as a file of texts (.txt), or say "
            "--set inputs.dtype=uint8 if the tokens are its bytes."
        )
    # -100 in 64 bits is 65,436 and 65,535 in 16.
    if _of_labels(path, vocab_size or bound):
        raise _nothing_fits(path, vocab_size or bound)
    fitting = fitting_readings(path, vocab_size, bound)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise SeveralReadingsError(path, [reading.dtype for reading in fitting])
    raise _nothing_fits(path, vocab_size or bound)


def fitting_readings(
    path: Path, vocab_size: int | None = None, bound: int | None = None
) -> list[Reading]:
    """Return the readings of a file without a header that give ids which a vocabulary may have.

    Parameters
    ----------
    path, vocab_size, bound
        As in `reading_of`.
    """
    limit = vocab_size or bound or _LARGEST
    known = vocab_size is not None or bound is not None
    words = (
        f"all ids are below {limit:,}"
        if known
        else "its ids are like those of a vocabulary"
    )
    raw = _looked_at(path)
    names = [name for name in _GUESSED if _whole(path, name)]
    fitting = [
        name
        for name in names
        if name != "uint8" and _fits(raw, name, limit, vocab_size)
    ]
    # Any bytes fit a vocabulary of bytes, so that they are read as such last.
    if (
        not fitting
        and (limit <= _BYTE or not known)
        and _fits(raw, "uint8", limit, vocab_size)
    ):
        fitting = ["uint8"]
    return [
        Reading(name, f"{name} ({words})") for name in _likelier_order(raw, fitting)
    ]


def _said(path: Path, dtype: str) -> Reading:
    """Return the reading that was asked for, unless no vocabulary at all has such ids."""
    if not _whole(path, dtype):
        width = np.dtype(DTYPES[dtype]).itemsize
        raise ArgumentError(
            f"{path} has {path.stat().st_size} bytes, which are no whole numbers of {dtype} "
            f"({width} bytes each), as was said; dtype is one of {', '.join(DTYPES)}."
        )
    ids = _looked_at(path).view(DTYPES[dtype])
    if int(np.median(ids)) > _LARGEST:
        others = " or ".join(reading.dtype for reading in fitting_readings(path))
        fits = f"; {others} fits" if others else ""
        raise ArgumentError(
            f"{path} is not of {dtype}, as was said: its ids would be "
            f"{_first(ids)}, which no vocabulary has{fits}."
        )
    return Reading(dtype, f"{dtype}, as was said")


def _looked_at(path: Path) -> np.ndarray:
    """Return bytes from all over a file, (n,) uint8, n a multiple of 8 unless the file is short."""
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    if len(raw) <= _PIECES * _BYTES:
        whole = len(raw) // 8 * 8
        return np.asarray(raw[: whole or len(raw)])
    starts = np.linspace(0, len(raw) - _BYTES, _PIECES).astype(np.int64) // 8 * 8
    return np.concatenate([raw[start : start + _BYTES] for start in starts])


def _is_text(raw: np.ndarray) -> bool:
    """Return whether bytes are letters and marks of ASCII alone: ids have other bytes, too."""
    printed = ((raw >= 0x20) & (raw < 0x7F)) | np.isin(raw, list(b"\t\n\r"))
    return len(raw) >= _FEWEST and bool(printed.all())


def _whole(path: Path, dtype: str) -> bool:
    return path.stat().st_size % np.dtype(DTYPES[dtype]).itemsize == 0


def _fits(raw: np.ndarray, dtype: str, limit: int, vocab_size: int | None) -> bool:
    """Return whether ids of a type are those that a text in some vocabulary may have."""
    kind = np.dtype(DTYPES[dtype])
    usable = raw[: len(raw) // kind.itemsize * kind.itemsize]
    ids = usable.view(kind)
    if not len(ids) or int(ids.min()) < 0 or int(ids.max()) >= limit:
        return False
    if vocab_size is not None and vocab_size > 2 ** (8 * kind.itemsize):
        return False  # 16 bits hold no vocabulary of 128,000
    return _is_no_narrower(ids) and _is_no_wider(ids)


def _is_no_narrower(ids: np.ndarray) -> bool:
    """Return whether numbers are no pairs of narrower ones, put together.

    Ids of more than 16 bits belong to a vocabulary that has most of those below, too. Pairs of
    small numbers leave holes: 65,536 and 65,537, and nothing from 9 to there.
    """
    if ids.dtype.itemsize == 1 or not ids.any():
        return ids.dtype.itemsize <= 2
    if ids.dtype.itemsize == 2:
        lower = ids & 0xFF
        has_holes = int(ids.max()) > _BYTE and int(lower.max()) <= _BYTE // 2
        # Of bytes in the other order all lower ones are 0.
        return bool(lower.any()) and not (has_holes and len(np.unique(ids)) > _BYTE)
    return int(ids.max()) < _HALF or int((ids & (_HALF - 1)).max()) > _SPREAD


def _is_no_wider(ids: np.ndarray) -> bool:
    """Return whether numbers are no parts of wider ones: two neighbours of four are always 0.

    One of two may be: a blank between words.
    """
    begin, second, third, end = (bool(ids[place::4].any()) for place in range(4))
    halves = {begin or second, third or end}
    return len(ids) < _FEWEST or halves != {True, False}


def _likelier_order(raw: np.ndarray, names: Sequence[str]) -> list[str]:
    """Return the types without those whose bytes are more likely in the other order.

    The upper byte of an id is less even than the lower one: frequent tokens have small ids. So
    where ids of both orders are in the vocabulary, the order counts in which this is so.
    """
    if {"uint16", "uint16-be"} <= set(names):
        upper = _entropy(raw[1::2]) - _entropy(raw[::2])
        if abs(upper) > _BITS:
            unlikely = "uint16" if upper > 0 else "uint16-be"
            return [name for name in names if name != unlikely]
        return [name for name in names if name != "uint16-be"]
    return list(names)


def _entropy(values: np.ndarray) -> float:
    """Return the entropy of bytes, in bits."""
    counts = np.bincount(values, minlength=256)
    shares = counts[counts > 0] / max(len(values), 1)
    return float(-(shares * np.log2(shares)).sum())


def _of_labels(path: Path, limit: int | None) -> str:
    """Return as which type a file holds labels; empty where it does not seem to."""
    signed = (
        name
        for name in ("int64", "int32", "int64-be", "int32-be")
        if _whole(path, name)
    )
    return next((name for name in signed if _holds_ignored(path, name, limit)), "")


def _holds_ignored(path: Path, dtype: str, limit: int | None) -> bool:
    """Return whether numbers are ids but for -100."""
    ids = _looked_at(path).view(DTYPES[dtype])
    strange = ids[(ids < 0) | (ids >= (limit or _LARGEST))]
    return bool(len(strange)) and bool((strange == _IGNORED).all())


def _first(ids: np.ndarray) -> str:
    return ", ".join(map(str, ids[:_SHOWN].tolist()))


def _shown(path: Path, dtype: str) -> str:
    ids = _looked_at(path).view(DTYPES[dtype])
    return f"{dtype} (ids {_first(ids)}, up to {int(ids.max()):,})"


def _outside(path: Path, dtype: str, limit: int | None) -> str:
    """Return which share of the ids, and how many of them, no vocabulary of this size has."""
    ids = _looked_at(path).view(DTYPES[dtype]).astype(np.int64)
    outside = ids[(ids < 0) | (ids >= (limit or _LARGEST))]
    if _IGNORED in outside:
        return (
            ", of which -100 marks places without a loss in labels: save the input ids"
        )
    share = f"{100 * len(outside) / max(len(ids), 1):.2g} %"
    kinds = np.unique(outside)
    which = f"all of them {kinds[0]}" if len(kinds) == 1 else f"{len(kinds):,} of them"
    return f", {share} outside, {which}"


def _nothing_fits(path: Path, limit: int | None) -> ArgumentError:
    """Return the error that says which ids the file would hold in the usual types."""
    names = [name for name in ("uint16", "int32") if _whole(path, name)]
    if name := _of_labels(path, limit):
        names = [name]
    ways = "; ".join(
        f"as {_shown(path, name)}{_outside(path, name, limit)}" for name in names
    )
    read = (
        ways or f"its {path.stat().st_size} bytes are no whole numbers of 16 or 32 bits"
    )
    below = (
        "ids of a vocabulary"
        if limit is None
        else f"ids below {limit:,}, the vocabulary's"
    )
    return ArgumentError(
        f"{path} does not hold {below}: {read}. Is it of another tokenizer, or does it hold a "
        "separator that is no token? What it is of is said with --set inputs.dtype=TYPE, one of "
        f"{', '.join(DTYPES)}."
    )
