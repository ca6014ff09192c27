"""What stands before or beside the ids in files of known formats: of llm.c and of Megatron."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from ..errors import ArgumentError

# 256 numbers of 32 bits: a magic one, the version, how many ids follow, and nothing but 0.
_HEADER = 1024
_NAMED = 16  # of them, that somebody's own header may fill
_FEWEST = 64  # ids, to call a number their count
# Modded-nanogpt takes the first, too.
_LLM_C = {(20240520, 1): "uint16", (20240801, 7): "uint32"}
_NAME = "the header of llm.c and modded-nanogpt"
_MEGATRON = b"MMIDIDX\x00\x00"
_CODES = {1: "uint8", 4: "int32", 5: "int64", 8: "uint16"}


def header_of(path: Path) -> tuple[str, str, int] | None:
    """Return the type of a file's ids, what says so, and where they begin; None without a header.

    Raises
    ------
    ArgumentError
        If a header announces another number of ids than there are, or is of no known format.
    """
    known = _of_llm_c(path) or _of_megatron(path)
    if known is None:
        _refuse_unknown(path)
    return known


def _refuse_unknown(path: Path) -> None:
    """Refuse a file that begins with what is no id: a number that counts what follows, or zeros."""
    size = path.stat().st_size
    with path.open("rb") as file:
        begin = file.read(_HEADER + 1)
    for kind in ("<u8", ">u8", "<u4", ">u4"):
        width = np.dtype(kind).itemsize
        count = int(np.frombuffer(begin[:width], kind)[0]) if len(begin) > width else 0
        if count > _FEWEST and any(count * of == size - width for of in (1, 2, 4, 8)):
            raise _of_no_format(
                path, width, f"the number {count:,}, which counts what follows"
            )
    numbers = (
        np.frombuffer(begin[:_HEADER], "<i4") if len(begin) > _HEADER else np.zeros(1)
    )
    if numbers[0] and not numbers[_NAMED:].any():
        raise _of_no_format(path, _HEADER, "a few numbers and nothing but 0")


def _of_no_format(path: Path, size: int, what: str) -> ArgumentError:
    return ArgumentError(
        f"{path} begins with {size} bytes that are no ids: {what}. It is no header of a known "
        f"format; save the ids alone: numpy.fromfile(FILE, DTYPE, offset={size}).tofile(NEW)."
    )


def _of_llm_c(path: Path) -> tuple[str, str, int] | None:
    with path.open("rb") as file:
        begin = file.read(_HEADER)
    if len(begin) < _HEADER:
        return None
    magic, version, count, *rest = np.frombuffer(begin, "<i4").tolist()
    dtype = _LLM_C.get((magic, version))
    if dtype is None or any(rest):
        return None
    there = (path.stat().st_size - _HEADER) / np.dtype(dtype).itemsize
    if there != count:
        raise ArgumentError(
            f"{path} holds {there:,.0f} ids, and {_NAME} announces {count:,}: is it cut off?"
        )
    return dtype, _NAME, _HEADER


def _of_megatron(path: Path) -> tuple[str, str, int] | None:
    index = path.with_suffix(".idx")
    if not index.is_file():
        return None
    with index.open("rb") as file:
        begin = file.read(len(_MEGATRON) + 9)
    if not begin.startswith(_MEGATRON) or len(begin) < len(_MEGATRON) + 9:
        return None
    _, code = struct.unpack("<QB", begin[len(_MEGATRON) :])
    if code not in _CODES:
        raise ArgumentError(
            f"{index} says that {path.name} holds no token ids (type {code})."
        )
    return _CODES[code], f"the index of Megatron, {index.name}", 0
