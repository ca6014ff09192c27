"""The tensors of one checkpoint of a control, computed one by one."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..hub.repository import RemoteModel
from ..weights.building import Template, instantiate
from ..weights.files import MemoryWeights, state_tensors
from ..weights.placed import unplaced
from .kinds import KINDS, in_blocks
from .sources import Sources

# Numbers of rows that are computed at once: half a megabyte in single precision, which a core has
# at hand without the memory.
_AT_ONCE = 1 << 17


class ControlReader:
    """Reader over the tensors of a control; the last tensor read is kept.

    Parameters
    ----------
    sources
        The opened checkpoints.
    kind, random_state
        Of the control.
    kept
        Names of tensors that stay those of the source.
    first_names
        The name that each tensor's random numbers are drawn for.
    """

    def __init__(
        self,
        sources: Sources,
        kind: str,
        random_state: int,
        names: frozenset[str],
        first_names: dict[str, str],
    ) -> None:
        self._sources = sources
        self._kind = kind
        self._random_state = random_state
        self._constants = names
        self._first_names = first_names
        self._last: tuple[str, Tensor] | None = None

    def names(self) -> list[str]:
        """Return the names of the source's tensors at this step, sorted."""
        return self._sources.here.names()

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name`, without computing it."""
        return self._sources.here.shape(name)

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype that tensor `name` is stored in at this step in the source."""
        return self._sources.here.dtype(name)

    def get(self, name: str) -> Tensor:
        """Return tensor `name`, computed in a wider dtype than its own and rounded to that."""
        if not self._moves(name):
            return self._sources.here.get(name)
        if self._last is None or self._last[0] != name:
            self._last = None  # so that two tensors are never held at once
            shape = self.shape(name)
            value = (
                self._filled(name, 0, shape[0])
                if in_blocks(self._kind, shape)
                else self._compute(name).to(self.dtype(name))
            )
            self._last = (name, value)
        return self._last[1]

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``; of large tensors, only blocks of rows are computed."""
        if not self._moves(name):
            return self._sources.here.rows(name, start, stop)
        is_last = self._last is not None and self._last[0] == name
        if is_last or not in_blocks(self._kind, self.shape(name)):
            return self.get(name)[start:stop]
        start, stop, _ = slice(start, stop).indices(self.shape(name)[0])
        return self._filled(name, start, max(start, stop))

    def _moves(self, name: str) -> bool:
        return self._sources.at > 0 and is_learned(
            name, self.dtype(name), self._constants
        )

    def _filled(self, name: str, start: int, stop: int) -> Tensor:
        """Return rows of a tensor, a few at a time, which spares the way through the memory.

        Blocks begin at the same rows whatever is asked for: products of matrices have other bits
        where they have other rows.
        """
        height, *row = self.shape(name)
        count = max(1, _AT_ONCE // max(math.prod(row), 1))
        rows = _new((stop - start, *row), self.dtype(name))
        into = torch.view_as_real(rows) if rows.is_complex() else rows
        for at in range(start - start % count, stop, count):
            value, back = self._parts(name, slice(at, min(at + count, height)))
            low = max(start, at)
            high = min(stop, at + count)
            wanted = slice(low - at, high - at)
            place = into[low - start : high - start]
            torch.sub(value[wanted], back[wanted], out=place)
        return rows

    def _compute(self, name: str) -> Tensor:
        value, back = self._parts(name, None)
        value = torch.sub(value, back, out=back)
        return torch.view_as_complex(value) if self.dtype(name).is_complex else value

    def _parts(self, name: str, rows: slice | None) -> tuple[Tensor, Tensor]:
        """Return where a tensor began, and the control's way back to it.

        The control is their difference: taking off +0 keeps the sign of a zero, adding it does not.
        """
        if name not in self._first_names:
            label = self._sources.path[0].label
            raise CheckpointError(
                f"{label}, where the control begins, has no tensor {name!r}."
            )
        first = self._first_names[name]
        moved = KINDS[self._kind](self._sources, name, first, self._random_state, rows)
        return self._sources.values(0, name, rows), moved.neg_().add_(0.0)


def _new(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return new memory of NumPy, which asks for large pages.

    PyTorch's comes in pages of 4 KiB: in single precision 1.8 ns a number to copy, in place of .8.
    """
    size = math.prod(shape) * dtype.itemsize
    memory = torch.from_numpy(np.empty(max(size, 1), np.uint8))
    return memory[:size].view(dtype).view(shape)


_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def kept_names(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the names of buffers, which a module has beside its parameters.

    They are known of a module in memory and of one given as ``model=``; otherwise only running
    statistics are recognised, by their names (see `is_learned`).
    """
    source = (
        checkpoint.weights.source
        if isinstance(checkpoint.weights, MemoryWeights)
        else None
    )
    if isinstance(source, nn.Module):
        return _buffers(source)
    template = unplaced(checkpoint.template)
    if template is None or isinstance(template, RemoteModel):
        return frozenset()
    return (
        _buffers(template)
        if isinstance(template, nn.Module)
        else _buffers_built(template, checkpoint.path)
    )


def is_learned(name: str, dtype: torch.dtype, constants: frozenset[str]) -> bool:
    """Return whether tensor `name` is a parameter, by its dtype and what is known of it.

    Examples
    --------
    >>> is_learned("bn.running_mean", torch.float32, frozenset())
    False
    """
    if not (dtype.is_floating_point or dtype.is_complex) or name in constants:
        return False
    return name.rpartition(".")[2] not in _STATISTICS


def _buffers(module: nn.Module) -> frozenset[str]:
    tensors = state_tensors(module)
    return frozenset(n for n, t in tensors.items() if not isinstance(t, nn.Parameter))


@functools.lru_cache(maxsize=8)
def _buffers_built(template: Template, path: Path | None) -> frozenset[str]:
    return _buffers(instantiate(template, path))
