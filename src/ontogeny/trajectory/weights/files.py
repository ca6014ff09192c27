"""The tensors of one checkpoint, opened lazily and read one by one.

Safetensors files come first and are memory-mapped. Pickled files (``pytorch_model.bin``, or what an
own training loop saved) are read only with ``weights_only=True``, so no code in them can run, and a
warning is logged.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ...errors import CheckpointError

logger = logging.getLogger("ontogeny.trajectory")

_STATE_KEYS = ("model", "state_dict", "model_state_dict", "module")
_COMPILED = re.compile(r"(^|\.)_orig_mod\.")


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


class Weights(Protocol):
    """Where the tensors of one checkpoint come from."""

    def open(self) -> Any:
        """Return a context manager that gives a `Reader`."""

    def on_disk(self) -> WeightFiles | None:
        """Return the files, None for tensors in memory; raise if they are not here yet."""


def _unknown(name: str, names: list[str]) -> CheckpointError:
    return CheckpointError(f"the checkpoint has no tensor {name!r}; it has {len(names)} others.")


class _SafetensorsReader:
    """Reader over one or more open safetensors files."""

    def __init__(self, handles: Mapping[str, Any]) -> None:
        self._handles = handles

    def names(self) -> list[str]:
        return sorted(self._handles)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._slice(name).get_shape())

    def dtype(self, name: str) -> torch.dtype:
        part = self._slice(name)
        return (part[:0] if part.get_shape() else self.get(name)).dtype

    def get(self, name: str) -> Tensor:
        return self._handle(name).get_tensor(name)

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        return self._slice(name)[start:stop]

    def _slice(self, name: str) -> Any:
        return self._handle(name).get_slice(name)

    def _handle(self, name: str) -> Any:
        if name not in self._handles:
            raise _unknown(name, self.names())
        return self._handles[name]


class TensorReader:
    """Reader over a mapping of tensors: in memory, or mapped by ``torch.load``."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def names(self) -> list[str]:
        """Return the names, sorted."""
        return sorted(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name`."""
        return tuple(self.get(name).shape)

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype of tensor `name`."""
        return self.get(name).dtype

    def get(self, name: str) -> Tensor:
        """Return tensor `name`, detached but not copied."""
        if name not in self._tensors:
            raise _unknown(name, self.names())
        return self._tensors[name].detach()

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``."""
        return self.get(name)[start:stop]


@dataclass(frozen=True)
class WeightFiles:
    """The weight files of one checkpoint folder, one or several shards."""

    files: tuple[Path, ...]
    pickled: bool = False

    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Return path, size and modification time (ns) of every file: the key of caches.

        Raises
        ------
        CheckpointError
            If a file is gone.
        """
        try:
            stats = [(path, path.stat()) for path in self.files]
        except OSError as error:
            raise CheckpointError(f"{error.filename} is gone: {error.strerror}.") from None
        return tuple((str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats)

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader; files are mapped, not read, and unmapped with the last tensor.

        Raises
        ------
        CheckpointError
            If a file is damaged, is a pickle that does not load with ``weights_only=True``, or
            two shards hold a tensor of the same name.
        """
        with ExitStack() as stack:
            if self.pickled:
                yield TensorReader(_join((f, _unpickle(f)) for f in self.files))
            else:
                yield _SafetensorsReader(
                    _join((f, _handles(stack.enter_context(_safe(f)))) for f in self.files)
                )

    def on_disk(self) -> WeightFiles:
        """Return the files themselves."""
        return self

    def check(self) -> None:
        """Read the headers of safetensors files, so that a truncated file is found early."""
        if not self.pickled:
            with self.open():
                pass


@dataclass(frozen=True, eq=False)
class MemoryWeights:
    """The tensors of a module or of a state dict in memory; they are not copied."""

    source: nn.Module | Mapping[str, Tensor]

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
    return {name: value for name, value in state.items() if isinstance(value, Tensor)}


def _join(shards: Any) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for path, tensors in shards:
        twice = sorted(joined.keys() & tensors.keys())
        if twice:
            raise CheckpointError(f"{path} repeats tensors of another shard: {twice[:3]}.")
        joined.update(tensors)
    return joined


def _safe(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}.") from None


def _handles(handle: Any) -> dict[str, Any]:
    return dict.fromkeys(handle.keys(), handle)


def _unpickle(path: Path) -> dict[str, Tensor]:
    _announce_pickle(path.parent)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=_is_zip(path))
    except Exception as error:  # damaged pickles raise anything
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointError(
            f"{path} does not load with weights_only=True, so it was not loaded at all ({reason}). "
            "It may be damaged, or hold code; convert it to safetensors where you trust it."
        ) from None
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{path} holds a {type(state).__name__}, not a state dict.")
    return {unwrapped(name): value for name, value in _tensors(path, state).items()}


def _tensors(path: Path, state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors of a state dict, also of one among other things as training loops save it.

    nanoGPT keeps it under ``"model"`` and Lightning under ``"state_dict"``.
    """
    for key in _STATE_KEYS:
        inner = state.get(key)
        if isinstance(inner, Mapping) and any(isinstance(v, Tensor) for v in inner.values()):
            state = inner
            break
    found = {name: value for name, value in state.items() if isinstance(value, Tensor)}
    if not found:
        raise CheckpointError(
            f"{path} holds no tensors by name, also not under {', '.join(_STATE_KEYS)}; it has the "
            f"keys {', '.join(map(str, list(state)[:8]))}."
        )
    return found


def unwrapped(name: str) -> str:
    """Return a tensor's name without what torch.compile and data parallelism put into it.

    Examples
    --------
    >>> unwrapped("_orig_mod.wte.weight"), unwrapped("module._orig_mod.head.weight")
    ('wte.weight', 'head.weight')
    """
    return _COMPILED.sub(r"\1", name.removeprefix("module."))


def _is_zip(path: Path) -> bool:
    """Return whether `path` has torch's zip format, the only one that can be memory-mapped."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


@functools.lru_cache(maxsize=4096)
def _announce_pickle(folder: Path) -> None:
    logger.warning(
        "weights in %s are pickled; they are read with weights_only=True, no code in them runs.",
        folder,
    )
