"""What stands before or beside the ids in files of known formats: of llm.c and of Megatron."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from ..errors import ArgumentError

# 256 numbers of 32 bits: a magic one, the version, how many ids follow, and nothing but 0.
_HEADER = 1024
_LLM_C = {(20240520, 1): "uint16", (20240801, 7): "uint32"}  # modded-nanogpt takes the first, too
_NAME = "the header of llm.c and modded-nanogpt"
_MEGATRON = b"MMIDIDX\x00\x00"
_CODES = {1: "uint8", 4: "int32", 5: "int64", 8: "uint16"}


def header_of(path: Path) -> tuple[str, str, int] | None:
    """Return the type of a file's ids, what says so, and where they begin; None without a header.

    Raises
    ------
    ArgumentError
        If a header announces another number of ids than there are.
    """
    return _of_llm_c(path) or _of_megatron(path)


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
        raise ArgumentError(f"{index} says that {path.name} holds no token ids (type {code}).")
    return _CODES[code], f"the index of Megatron, {index.name}", 0
