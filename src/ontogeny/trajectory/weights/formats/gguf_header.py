"""Whether a GGUF file is whole, by its header: its numbers take seconds to convert."""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path

_VERSIONS = (2, 3)
_STRING = 8
_ARRAY = 9
# Bytes of a value by its type; strings and arrays have their length before them.
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_ALIGNMENT = 32
# Numbers and bytes of a block by the type of a tensor. A file with another type is read to see.
# The package gguf has them too, but what is imported here is a library of all cells.
_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
    34: (256, 54),
    35: (256, 66),
}

# What reading a damaged header ends in, nested arrays among it.
_DAMAGED = (
    OSError,
    ValueError,
    LookupError,
    ArithmeticError,
    RecursionError,
    struct.error,
)


def is_whole(path: Path) -> bool:
    """Return whether a file names tensors and holds all their bytes, as far as can be told.

    Examples
    --------
    >>> is_whole(Path(__file__))
    False
    """
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return _Header(data).end() <= len(data)
    except _DAMAGED:
        return False


class _Header:
    """A place in a header, which moves on with everything that is read."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def end(self) -> int:
        """Return where the last tensor ends."""
        if self._data[:4] != b"GGUF":
            raise ValueError("no GGUF file")
        self._at = 4
        if self._whole("I") not in _VERSIONS:
            raise ValueError("of another version")
        tensors = self._whole("Q")
        if not tensors:
            raise ValueError("without tensors")
        alignment = self._skip_settings(self._whole("Q"))
        last = 0
        for _ in range(tensors):
            self._string()
            shape = [self._whole("Q") for _ in range(self._whole("I"))]
            block, size = _BLOCKS[self._whole("I")]
            last = max(last, self._whole("Q") + math.prod(shape) // block * size)
        return -(-self._at // alignment) * alignment + last

    def _skip_settings(self, count: int) -> int:
        """Move to the end of the settings, and return how tensors are aligned."""
        alignment = _ALIGNMENT
        for _ in range(count):
            name = self._string()
            kind = self._whole("I")
            if name == b"general.alignment":
                alignment = self._whole("I")
            else:
                self._skip(kind)
        return alignment

    def _skip(self, kind: int) -> None:
        if kind == _STRING:
            self._string()
        elif kind != _ARRAY:
            self._at += _SIZES[kind]
        else:
            of = self._whole("I")
            count = self._whole("Q")
            if of in _SIZES:
                self._at += _SIZES[of] * count
            else:
                for _ in range(count):
                    self._skip(of)

    def _string(self) -> bytes:
        length = self._whole("Q")
        begin = self._at
        self._at += length
        return self._data[begin : self._at]

    def _whole(self, code: str) -> int:
        (value,) = struct.unpack_from(f"<{code}", self._data, self._at)
        self._at += struct.calcsize(code)
        return int(value)
