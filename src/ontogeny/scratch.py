"""Arrays in files without a name, for what memory has no room for."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np


def scratch_room() -> int:
    """Return the bytes that are free where temporary files go, which ``TMPDIR`` names.

    Examples
    --------
    >>> scratch_room() >= 0
    True
    """
    return shutil.disk_usage(tempfile.gettempdir()).free


def scratch_array(
    shape: Sequence[int], dtype: np.dtype | type, folder: Path | None = None
) -> np.ndarray:
    """Return an array of zeros that lies in a file of `folder`, or where temporary files go.

    The file has no name, so nothing of it is left when the array is gone, or its process. All of
    it is reserved at once: a disk that fills up later would end the process without a word.

    Raises
    ------
    OSError
        If the disk has no room for it.

    Examples
    --------
    >>> scratch_array((2, 2), np.float32)
    array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not size:  # no file without content can be mapped
        return np.zeros(tuple(shape), dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        return np.asarray(np.memmap(file, dtype, "r+", shape=tuple(shape)))


def let_go(array: np.ndarray) -> None:
    """Take an array of `scratch_array` out of memory; its file keeps it, until it is read again.

    Where the system cannot be told so, it stays until the system needs the room. So does a map of
    another file that is copied on writing: what was written would be lost.

    Examples
    --------
    >>> array = scratch_array((2,), np.float32)
    >>> array[:] = 3
    >>> let_go(array)
    >>> array
    array([3., 3.], dtype=float32)
    """
    mapped = _map_of(array)
    if mapped is not None and mapped.mode != "c":
        let_go_unchanged(mapped)


def let_go_unchanged(array: np.ndarray) -> None:
    """Do so with a map that is copied on writing, as of a stored cell, before it is written to.

    Examples
    --------
    >>> let_go_unchanged(np.zeros(2))  # lies in no file
    """
    held: object = _map_of(array)
    while isinstance(held, np.ndarray):
        held = held.base
    if isinstance(held, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        held.madvise(mmap.MADV_DONTNEED)


def _map_of(array: np.ndarray) -> np.memmap | None:
    """Return the map of a file that an array lies in; memory that has none would be lost."""
    held: object = array
    while isinstance(held, np.ndarray):
        if isinstance(held, np.memmap):
            return held
        held = held.base
    return None


def trim_heap() -> None:
    """Give memory that was freed back to the system, where the C library can be told so.

    It keeps blocks of up to 32 MB for later ones: of 100,000 tokens .9 GB beside .8 in use.

    Examples
    --------
    >>> trim_heap()
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def _c_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)  # what this process is linked with
    except (OSError, TypeError):  # Windows has none
        return None
