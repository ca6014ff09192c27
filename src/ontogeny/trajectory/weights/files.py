"""The tensors of one checkpoint, opened lazily and read one by one.

Safetensors files come first, and each of their tensors is memory-mapped alone: a map of the whole
file would keep all that was read of it in memory, a second copy of the checkpoint. Pickled files
(``pytorch_model.bin``, or what an own training loop saved) are read without running any code in
them, and a warning is logged.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ...errors import ArgumentError, CheckpointError
from .parts import PartsReader, keyed
from .pickled import check_whole_pickle, unpickle
from .placement import is_placed, resting_tensors
from .recognised import check_readable, pointer

Stamp: TypeAlias = tuple[int, int, int, int]


class Reader(Protocol):
    """Tensors of one checkpoint by name; nothing is read before it is asked for."""

    def names(self) -> list[str]:
        """Return the stored tensor names, sorted."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name` without reading it."""

    def dtype(self, name: str) -> torch.dtype:
        """Return the stored dtype of tensor `name` without reading it."""

    def get(self, name: str) -> Tensor:
        """Return tensor `name`, memory-mapped where the file allows it."""

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``, reading no other row."""


def matrix_names(reader: Reader) -> list[str]:
    """Return the names of the floating-point matrices of a checkpoint."""
    return [
        name
        for name in reader.names()
        if len(reader.shape(name)) == 2 and reader.dtype(name).is_floating_point
    ]


class Weights(Protocol):
    """Where the tensors of one checkpoint come from."""

    def open(self) -> Any:
        """Return a context manager that gives a `Reader`."""

    def on_disk(self) -> WeightFiles | None:
        """Return the files, None for tensors in memory; raise if they are not here yet."""


@dataclass(frozen=True)
class _Entry:
    """Where a tensor lies in its file, counted from the end of the header."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    begin: int
    end: int

    @property
    def is_packed(self) -> bool:
        """Whether several numbers lie in one byte."""
        return self.end - self.begin != math.prod(self.shape) * self.dtype.itemsize


class _Shard:
    """One safetensors file; it is opened when a tensor is read, and at first for its header."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        self._stack = stack
        self._stamp = _stamp(path)
        self._begin, self._entries, _ = _header(path, self._stamp)

    def names(self) -> list[str]:
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def dtype(self, name: str) -> torch.dtype:
        return self._entries[name].dtype

    def get(self, name: str) -> Tensor:
        return self.rows(name)

    def rows(self, name: str, start: int = 0, stop: int | None = None) -> Tensor:
        """Map ``tensor[start:stop]``; a number without dimensions is one row."""
        entry = self._entries[name]
        shape = entry.shape
        dtype = entry.dtype
        if entry.is_packed:
            with _safe(self._path) as checked:  # several numbers in one byte
                return checked.get_tensor(name)[slice(start, stop) if shape else ...]
        first, last, _ = slice(start, stop).indices(shape[0] if shape else 1)
        row = math.prod(shape[1:]) * dtype.itemsize
        size = max(last - first, 0) * row
        flat = self._mapped(self._begin + entry.begin + first * row, size, dtype)
        return flat.reshape((max(last - first, 0), *shape[1:]) if shape else ())

    def every(self, name: str, stride: int) -> Tensor:
        """Return each `stride`-th number, and let the system read no more than their pages."""
        entry = self._entries[name]
        size = entry.end - entry.begin
        if entry.is_packed or not size:
            return self.get(name).reshape(-1)[::stride]
        begin = self._begin + entry.begin
        mapped: Any = np.memmap(self._file, np.uint8, "r", begin, (size,))
        if hasattr(mmap, "MADV_RANDOM"):
            mapped._mmap.madvise(mmap.MADV_RANDOM)
        taken = np.asarray(mapped).reshape(-1, entry.dtype.itemsize)[::stride].copy()
        return torch.from_numpy(taken).view(entry.dtype).reshape(-1)

    @cached_property
    def _file(self) -> BinaryIO:
        """The open file, unless it was written over since its header was read."""
        try:
            file = self._stack.enter_context(self._path.open("rb"))
        except OSError as error:
            raise CheckpointError(f"{self._path} is gone: {error.strerror}.") from None
        # Not by the change time: a new link to the file, or new rights, are no new content.
        if stamp_of(os.fstat(file.fileno()))[:-1] != self._stamp[:-1]:
            raise CheckpointError(f"{self._path} was written over while it was read.")
        return file

    def _mapped(self, offset: int, size: int, dtype: torch.dtype) -> Tensor:
        if not size:
            return torch.empty(0, dtype=dtype)
        # Copy-on-write: PyTorch takes such an array without a warning, and the file stays.
        values = np.asarray(np.memmap(self._file, np.uint8, "c", offset, (size,)))
        aligned = values if offset % dtype.itemsize == 0 else values.copy()
        return torch.from_numpy(aligned).view(dtype)


class ShardsReader(PartsReader):
    """Reader over one or more open files, by what holds each tensor."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name`."""
        return tuple(self._part(name).shape(name))

    def dtype(self, name: str) -> torch.dtype:
        """Return the stored dtype of tensor `name`."""
        return cast("torch.dtype", self._part(name).dtype(name))

    def get(self, name: str) -> Tensor:
        """Return tensor `name`, memory-mapped."""
        return cast("Tensor", self._part(name).get(name))

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``."""
        return cast("Tensor", self._part(name).rows(name, start, stop))

    def every(self, name: str, stride: int) -> Tensor:
        """Return each `stride`-th number of a tensor, without reading what lies between.

        Mapped as others are, a sample of 65,536 numbers had the system read the whole file.
        """
        return cast("Tensor", self._part(name).every(name, stride))


class TensorReader(PartsReader):
    """Reader over a mapping of tensors: in memory, or mapped by ``torch.load``."""

    def get(self, name: str) -> Tensor:
        """Return tensor `name`, detached but not copied."""
        return cast("Tensor", self._part(name).detach())


@dataclass(frozen=True)
class WeightFiles:
    """The weight files of one checkpoint folder, one or several shards.

    Attributes
    ----------
    files
        Their paths.
    pickled
        Whether they are read with `unpickle`.
    reader
        What reads them together, in a format of its own; None of plain files.
    key
        Under which of several keys of the files the weights stand; None: the usual ones.
    is_whole
        Says of a file by its header that it can be read, where reading takes long; None: it is
        opened to see.
    """

    files: tuple[Path, ...]
    pickled: bool = False
    reader: Callable[[tuple[Path, ...]], Reader] | None = None
    key: str | None = None
    is_whole: Callable[[Path], bool] | None = None

    def stamp(self) -> tuple[tuple[str, int, int, int], ...]:
        """Return path, size, modification and change time (ns) of every file: the key of caches.

        Copies keep the size and may keep the modification time; the change time is the system's.

        Raises
        ------
        CheckpointError
            If a file is gone.
        """
        try:
            stats = [(path, path.stat()) for path in self.files]
        except OSError as error:
            raise CheckpointError(
                f"{error.filename} is gone: {error.strerror}."
            ) from None
        return tuple(
            (str(p), s.st_size, s.st_mtime_ns, s.st_ctime_ns) for p, s in stats
        )

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader; tensors are mapped, not read, each for as long as it is used.

        Raises
        ------
        CheckpointError
            If a file is damaged, holds no tensors, or two shards hold a tensor of the same name.
        """
        with ExitStack() as stack:
            reader = self._reader(stack)
            if self.key is not None and not self.pickled:
                reader = keyed(reader, self.key, self.files[0])
            check_readable(self.files[0], reader)
            yield reader

    def _reader(self, stack: ExitStack) -> Reader:
        if self.reader is not None:
            return self.reader(self.files)
        if self.pickled:
            return TensorReader(_join((f, unpickle(f, self.key)) for f in self.files))
        return ShardsReader(_join((f, _handles(f, stack)) for f in self.files))

    def apart(self) -> tuple[WeightFiles, ...]:
        """Return the files one by one, where each can be read without the others."""
        if self.reader is not None:
            return (self,)
        return tuple(replace(self, files=(path,)) for path in self.files)

    def on_disk(self) -> WeightFiles:
        """Return the files themselves."""
        return self

    def check(self) -> None:
        """Read headers and indices, so that a file that cannot be read is found early.

        Of pickled files the ends are looked at: a save that was interrupted leaves no end.
        """
        for path in self.files if self.pickled else ():
            check_whole_pickle(path)
        is_known = self.is_whole is not None and all(map(self.is_whole, self.files))
        if not (self.pickled or is_known):
            with self.open():
                pass


@dataclass(frozen=True, eq=False)
class MemoryWeights:
    """The tensors of a module or of a state dict in memory; they are not copied."""

    source: nn.Module | Mapping[str, Tensor]

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self.source, nn.Module) and is_placed(self.source):
            raise ArgumentError(
                "a model that accelerate has placed cannot be sent to another process; give "
                "checkpoints in files with model=build, a function that places one, or use one "
                "process."
            )
        return {"source": self.source}

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader over the tensors as they are now."""
        if isinstance(self.source, nn.Module):
            yield TensorReader(state_tensors(self.source))
        else:
            yield TensorReader(self.source)

    def on_disk(self) -> None:
        """Return None: there are no files."""


def state_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers under every name, tied ones as the same object.

    Examples
    --------
    >>> sorted(state_tensors(nn.Linear(2, 3)))
    ['bias', 'weight']
    """
    state = module.state_dict(keep_vars=True)
    if is_placed(module):
        state |= resting_tensors(module)
    return {name: value for name, value in state.items() if isinstance(value, Tensor)}


def _join(shards: Any) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for path, tensors in shards:
        twice = sorted(joined.keys() & tensors.keys())
        if twice:
            raise CheckpointError(
                f"{path} repeats tensors of another shard: {twice[:3]}."
            )
        joined.update(tensors)
    return joined


def _stamp(path: Path) -> Stamp:
    try:
        return stamp_of(path.stat())
    except OSError as error:
        raise CheckpointError(
            f"{path} is not a readable safetensors file: {error}."
        ) from None


def stamp_of(stat: os.stat_result) -> Stamp:
    """Return what changes when a file is written over: a copy may keep the modification time."""
    return stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns


@lru_cache(maxsize=1024)
def _header(path: Path, stamp: Stamp) -> tuple[int, dict[str, _Entry], dict[str, str]]:
    """Return where the tensors of a file begin, each of them by its name, and its notes."""
    with _safe(path) as checked, path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        layout = json.loads(file.read(length))
        # Which is no tensor; MLX writes null.
        notes = layout.pop("__metadata__", None) or {}
        entries = {name: _entry(checked, name, place) for name, place in layout.items()}
    return 8 + length, entries, notes


def safe_metadata(path: Path) -> dict[str, str]:
    """Return the notes in the header of a safetensors file.

    Raises
    ------
    CheckpointError
        If the file is damaged.
    """
    return _header(path, _stamp(path))[2]


# As headers name them. Of 7 billion parameters, slices without rows took 4 s to tell.
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "C64": torch.complex64,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def _entry(checked: Any, name: str, place: Mapping[str, Any]) -> _Entry:
    shape = tuple(place["shape"])
    dtype = _DTYPES.get(place["dtype"])
    if dtype is None:  # several numbers in one byte have another shape
        part = checked.get_slice(name)
        shape = tuple(part.get_shape())
        dtype = (part[:0] if shape else checked.get_tensor(name)).dtype
    return _Entry(shape, dtype, *place["data_offsets"])


def _safe(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        reason = pointer(path) or f"is not a readable safetensors file: {error}"
        raise CheckpointError(f"{path} {reason}.") from None


def _handles(path: Path, stack: ExitStack) -> dict[str, Any]:
    shard = _Shard(path, stack)
    return dict.fromkeys(shard.names(), shard)
