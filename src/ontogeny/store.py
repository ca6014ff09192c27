"""Cells on disk: small labelled results, each written whole or not at all.

A cell is one safetensors file. Its header holds dimensions, coordinates, attributes, the status,
the components of its fingerprint and a checksum of its content, so that it can be checked without
reading its numbers; numbers of large cells are memory-mapped, but for those that are compressed to
less than three quarters of their bytes. The header itself is sealed with a digest, so that a flipped
bit in it never passes. Nothing in it is a pickle.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xarray as xr

from .errors import StoreError
from .scratch import let_go, let_go_unchanged
from .whole_files import writing_whole

# The status of a cell whose header alone was kept; its checksum is that of the numbers.
DROPPED = "dropped"

_FORMAT = "ontogeny-cell-2"
_PARTS = {
    "variables": dict,
    "attrs": dict,
    "status": str,
    "fingerprint": dict,
    "provenance": dict,
    "checksum": str,
}
# By the names that safetensors gives them, such as F32 and I8; bytes are in its order, the little.
_DTYPES = {
    f"{code[0].upper()}{8 * int(code[1])}": np.dtype(f"<{code}")
    for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
} | {"BOOL": np.dtype("bool")}
_STORABLE = frozenset(_DTYPES.values())
_SMALL = 2**18  # bytes of numbers that are read at once
_AT_ONCE = 2**24  # numbers of a map that are in memory for the checksum
# Bytes of the numbers that may be compressed.
_FEWEST_PACKED = 2**12
_MOST_PACKED = 2**28


@dataclass(frozen=True)
class Cell:
    """A labelled result with its status (``"done"``, ``"missing: why"``, ``"failed: why"``)."""

    data: xr.Dataset
    status: str = "done"
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    checksum: str = ""


def write_cell(path: Path, cell: Cell) -> str:
    """Write `cell` to `path` under a temporary name, then rename it; return its checksum.

    Raises
    ------
    StoreError
        If a variable holds neither numbers, of at most 64 bits, nor texts.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cells" / "loss" / "100.safetensors"
    >>> _ = write_cell(
    ...     path, Cell(xr.Dataset({"loss": 4.25}), fingerprint={"weights": "ab"})
    ... )
    >>> float(read_cell(path).data.loss)
    4.25
    """
    tensors: dict[str, np.ndarray] = {}
    variables: dict[str, Any] = {}
    for name, variable in cell.data.variables.items():
        entry: dict[str, Any] = {
            "dims": list(variable.dims),
            "attrs": plain(variable.attrs),
        }
        entry["coord"] = name in cell.data.coords
        values = np.asarray(variable.values)
        if values.dtype.kind in "OTU":
            entry["strings"] = values.tolist()
        else:
            tensors[str(name)] = _storable(str(name), values)
        variables[str(name)] = entry
    packed = {
        name: small for name, values in tensors.items() if len(small := _packed(values))
    }
    header = {
        "format": _FORMAT,
        "variables": variables,
        "attrs": plain(cell.data.attrs),
        "status": cell.status,
        "fingerprint": dict(cell.fingerprint),
        "provenance": dict(cell.provenance),
        "packed": {
            name: [tensors[name].dtype.str, tensors[name].shape] for name in packed
        },
    }
    header["checksum"] = checksum = _checksum(tensors, header)
    _save(path, {**tensors, **packed}, header)
    return checksum


def _save(
    path: Path, tensors: dict[str, np.ndarray], header: Mapping[str, Any]
) -> None:
    from safetensors.numpy import save_file

    text = json.dumps(header)
    with writing_whole(path) as half:
        save_file(tensors, half, {"cell": text, "seal": _seal(text)})


def _storable(name: str, values: np.ndarray) -> np.ndarray:
    """Return numbers in this machine's byte order and in one piece."""
    dtype = values.dtype.newbyteorder("=")
    if dtype not in _STORABLE:
        raise StoreError(
            f"{name} is of type {dtype}; a cell holds real numbers and texts."
        )
    return np.ascontiguousarray(values, dtype).reshape(values.shape)


def _packed(values: np.ndarray) -> np.ndarray:
    """Return the bytes of numbers compressed to less than 3/4, or none: they stay as they are.

    Codes of concepts are zeros to nine tenths. What is large stays, to be mapped and not read.
    """
    if not _FEWEST_PACKED <= values.nbytes <= _MOST_PACKED:
        return np.empty(0, np.uint8)
    small = np.frombuffer(_codec().encode(values), np.uint8)
    return small if 4 * small.size < 3 * values.nbytes else small[:0]


def _unpacked(small: np.ndarray, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Return what `_packed` has compressed, if the head of its bytes says what the header says."""
    size, _, length = np.frombuffer(small[4:16].tobytes(), "<u4")
    fits = (size, length) == (math.prod(shape) * np.dtype(dtype).itemsize, small.size)
    if np.dtype(dtype) not in _STORABLE or not fits or size > _MOST_PACKED:
        raise ValueError(
            f"{size} bytes are no numbers of shape {shape} and type {dtype}"
        )
    values = np.empty(shape, dtype)
    _codec().decode(small, out=values)
    return values


def _codec() -> Any:
    from numcodecs import Blosc

    # By bits it is an eighth larger, of floats.
    return Blosc("zstd", shuffle=Blosc.SHUFFLE)


def read_cell(path: Path, *, verify: bool = True) -> Cell:
    """Read a cell; the numbers of a large one are memory-mapped.

    Raises
    ------
    StoreError
        If the file is damaged or is no cell: whatever is wrong with it. Without `verify` its
        numbers are not read, and damage to them alone is not found.
    """
    with _reading(path) as file:
        # One file throughout, though another may take its name meanwhile.
        header, layout, start = _parsed(path, file)
        tensors = _tensors(file, layout, start)
        for name, (dtype, shape) in header.get("packed", {}).items():
            tensors[name] = _unpacked(tensors[name], dtype, shape)
        verify = verify and header["status"] != DROPPED
        if (
            verify
            and _checksum(tensors, header, let_go_unchanged) != header["checksum"]
        ):
            raise StoreError(
                f"{path} is damaged: its checksum differs. Delete it and run again."
            )
        data: dict[str, Any] = {}
        coords: dict[str, Any] = {}
        for name, entry in header["variables"].items():
            strings = entry.get("strings")
            values = (
                tensors[name] if strings is None else np.array(strings, dtype=object)
            )
            (coords if entry["coord"] else data)[name] = (
                entry["dims"],
                values,
                entry["attrs"],
            )
        dataset = xr.Dataset(data, coords, header["attrs"])
    parts = (
        header[name] for name in ("status", "fingerprint", "provenance", "checksum")
    )
    return Cell(dataset, *parts)


def read_header(path: Path) -> dict[str, Any]:
    """Return a cell's header: status, fingerprint, provenance and checksum, without its numbers.

    Raises
    ------
    StoreError
        If the file is truncated, is no cell, or its header is damaged.
    """
    with _reading(path) as file:
        return _parsed(path, file)[0]


def drop_numbers(path: Path) -> None:
    """Keep the header of a cell alone: what it is of, and its checksum.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "reference.safetensors"
    >>> checksum = write_cell(path, Cell(xr.Dataset({"mlp": 4.25})))
    >>> drop_numbers(path)
    >>> read_header(path)["checksum"] == checksum
    True
    """
    header = read_header(path)
    if header["status"] != DROPPED:
        _save(path, {}, header | {"variables": {}, "packed": {}, "status": DROPPED})


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one line for each component in which two fingerprints differ.

    A component with entries is one line where the other fingerprint has none of its own for it.

    Examples
    --------
    >>> difference(
    ...     {"inputs": {"text": "a1"}, "version": 1},
    ...     {"inputs": {"text": "b2"}, "version": 1},
    ... )
    ['inputs.text: a1 -> b2']
    """
    a = dict(_flat(_beside(old, new)))
    b = dict(_flat(_beside(new, old)))
    lines = []
    for key in sorted(a.keys() | b.keys()):
        before = a.get(key, "absent")
        after = b.get(key, "absent")
        if before != after:
            lines.append(f"{key}: {_short(before)} -> {_short(after)}")
    return lines


def plain(value: Any) -> Any:
    """Return `value` as JSON would give it back: tuples as lists, numbers as Python numbers.

    Examples
    --------
    >>> plain({1: (2, np.float64(3))})
    {'1': [2, 3.0]}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _checksum(
    tensors: Mapping[str, np.ndarray],
    header: Mapping[str, Any],
    leave: Callable[[np.ndarray], None] = let_go,
) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(
        json.dumps([header["variables"], header["attrs"]], sort_keys=True).encode()
    )
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(f"{name}{values.dtype.str}{values.shape}".encode())
        numbers = np.ascontiguousarray(values).reshape(-1)
        # Of a state of .9 GB all stayed in memory once it was read.
        for start in range(0, len(numbers), _AT_ONCE):
            part = numbers[start : start + _AT_ONCE]
            digest.update(part.data)
            leave(part)
    return digest.hexdigest()


def _seal(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """Give the open file; whatever is wrong with its content is said of it as a StoreError."""
    try:
        with path.open("rb") as file:
            yield file
    except StoreError:
        raise
    # A file that anybody may have written, or that was damaged, makes JSON, numpy and xarray raise
    # whatever they have: a deep nesting a RecursionError, a forged shape a MemoryError.
    except Exception as error:
        kind = type(error).__name__
        raise StoreError(f"{path} is not a readable cell: {kind}: {error}") from error


def _parsed(path: Path, file: BinaryIO) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Return (cell header, tensors as `_tensor` gives them, offset of the first tensor byte)."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if 8 + length > size:  # before so much memory is asked for
        raise StoreError(f"{path} is not a whole cell: it is cut short.")
    layout = json.loads(file.read(length))
    metadata = layout.pop("__metadata__")
    header = json.loads(metadata["cell"])
    tensors = {name: _tensor(spec) for name, spec in layout.items()}
    numbers = {
        name for name, entry in header["variables"].items() if "strings" not in entry
    }
    if (
        header["format"] != _FORMAT
        or metadata["seal"] != _seal(metadata["cell"])
        or any(not isinstance(header[name], kind) for name, kind in _PARTS.items())
        or numbers != tensors.keys()
        or size != 8 + length + max((end for *_, end in tensors.values()), default=0)
    ):
        raise StoreError(f"{path} is not a whole cell of this version.")
    return header, tensors, 8 + length


def _tensor(spec: Mapping[str, Any]) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Return dtype, shape and the first and last offset of a tensor, which must fit together."""
    dtype = _DTYPES[spec["dtype"]]
    shape = tuple(spec["shape"])
    begin, end = spec["data_offsets"]
    if end - begin != math.prod(shape) * dtype.itemsize or min(begin, *shape, 0) < 0:
        raise ValueError(
            f"{end - begin} bytes are no numbers of shape {shape} and type {dtype}"
        )
    return dtype, shape, begin, end


def _tensors(
    file: BinaryIO, layout: Mapping[str, Any], start: int
) -> dict[str, np.ndarray]:
    """Return the tensors of a cell: those of a small one in memory, which maps take longer for."""
    size = max((end for *_, end in layout.values()), default=0)
    if size > _SMALL:
        return {
            name: _map(file, dtype, shape, start + begin, start + end)
            for name, (dtype, shape, begin, end) in layout.items()
        }
    file.seek(start)
    content = np.frombuffer(bytearray(file.read(size)), np.uint8)
    return {
        name: content[begin:end].view(dtype).reshape(shape)
        for name, (dtype, shape, begin, end) in layout.items()
    }


def _map(
    file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...], begin: int, end: int
) -> np.ndarray:
    if begin == end:
        return np.empty(shape, dtype)
    # Copy-on-write: PyTorch takes such an array without a warning, and the file never changes.
    mapped = np.memmap(file, dtype=dtype, mode="c", offset=begin, shape=shape or (1,))
    return np.asarray(mapped).reshape(shape)


def _beside(value: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fingerprint with a count for entries that have no counterparts in the other."""
    shown = dict(value)
    for key, item in value.items():
        is_alone = key in other and not isinstance(other[key], Mapping)
        if is_alone and isinstance(item, Mapping):
            shown[key] = f"{len(item)} entries"
    return shown


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item


def _short(value: Any) -> str:
    text = str(value)
    is_digest = len(text) >= 32 and all(c in "0123456789abcdef" for c in text)
    if is_digest:
        return text[:8]
    return text if len(text) <= 60 else text[:57] + "..."
