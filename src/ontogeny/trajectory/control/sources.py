"""The stored checkpoints that a control is computed from, opened as they are needed."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import ExitStack
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..hub.revision import HubWeights
from ..weights.files import MemoryWeights, Reader

_HALF = (torch.bfloat16, torch.float16)
_PAIRS = 4096  # of checkpoints whose increments a process remembers

_lengths: OrderedDict[tuple[str, str], dict[str, float]] = OrderedDict()


class Sources:
    """Tensors of the checkpoints of a path, and the lengths of the increments between them.

    Parameters
    ----------
    path
        Checkpoints by increasing step; the motion is counted from the first.
    at
        Which of them is the present one. It is opened first: where revisions on disk are bounded,
        whoever has opened another waits for nothing more.
    stack
        Closes what was opened.
    single
        Whether rows in single precision stay so.
    """

    def __init__(
        self,
        path: tuple[Checkpoint, ...],
        at: int,
        stack: ExitStack,
        single: bool = False,
    ) -> None:
        self.path = path
        self.at = at
        self._stack = stack
        self._single = (*_HALF, torch.float32) if single else _HALF
        self._readers: dict[int, Reader] = {}
        self._pairs: dict[int, dict[str, float]] = {}
        self._mapped: dict[int, tuple[str, Tensor]] = {}
        self.here = self.reader(at)

    def reader(self, index: int) -> Reader:
        """Return the opened checkpoint at place `index` of the path."""
        if index not in self._readers:
            self._readers[index] = self._stack.enter_context(self.path[index].open())
        return self._readers[index]

    def values(
        self, index: int, name: str, rows: slice | Tensor | None = None
    ) -> Tensor:
        """Return a tensor in double precision, or some of its rows; complex ones as pairs.

        Rows in half precision come in single precision, which holds their differences as well.

        Raises
        ------
        CheckpointError
            If the checkpoint lacks the tensor, or has it in another shape than the present one.
        """
        reader = self.reader(index)
        shape = reader.shape(name)
        if shape != self.here.shape(name):
            raise CheckpointError(
                f"{name} has shape {shape} in {self.path[index].label} and "
                f"{self.here.shape(name)} in {self.path[self.at].label}, so no control can be "
                "made of its motion; select steps with the same shapes."
            )
        stored = self._rows(index, name, rows)
        if rows is not None and stored.dtype in self._single:
            return stored.detach().cpu().to(torch.float32)
        return _double(stored)

    def motion(
        self, index: int, name: str, rows: slice | Tensor | None = None
    ) -> Tensor:
        """Return how far a tensor is from where it was at the first checkpoint of the path."""
        there, first = self.values(index, name, rows), self.values(0, name, rows)
        # Chosen rows are a copy.
        return there.sub_(first) if isinstance(rows, Tensor) else there - first

    def _rows(self, index: int, name: str, rows: slice | Tensor | None) -> Tensor:
        """Return rows as they are stored; of a tensor read by chosen rows, the map is kept."""
        reader = self.reader(index)
        if rows is None:
            return reader.get(name)
        known, tensor = self._mapped.get(index, ("", None))
        if isinstance(rows, slice):
            if known != name or tensor is None:
                return reader.rows(name, rows.start, rows.stop)
            return tensor[rows]
        if known != name or tensor is None:
            tensor = reader.get(name)
            self._mapped[index] = name, tensor
        return tensor.index_select(0, rows.to(tensor.device))

    def lengths(self, name: str) -> np.ndarray:
        """Return the norms of the increments along the path, (len(path) - 1,) float64.

        Those between checkpoints in files are remembered in a process by their fingerprints.

        Raises
        ------
        CheckpointError
            If a norm is NaN or infinite.
        """
        return np.array(
            [self._length(i, name) for i in range(1, len(self.path))], np.float64
        )

    def _length(self, index: int, name: str) -> float:
        # Fingerprints of both are made of all their tensors.
        if index not in self._pairs:
            self._pairs[index] = pair_lengths(self.path[index - 1], self.path[index])
        lengths = self._pairs[index]
        if name not in lengths:
            lengths[name] = norm(
                self.values(index, name) - self.values(index - 1, name)
            )
        if not np.isfinite(lengths[name]):
            raise CheckpointError(
                f"the way of {name} to {self.path[index].label} is {lengths[name]}: the weights "
                "there, or at the checkpoint before, are not finite."
            )
        return lengths[name]


def pair_lengths(before: Checkpoint, after: Checkpoint) -> dict[str, float]:
    """Return what is known of the increments between two checkpoints, to look up and to add to.

    Weights in memory can change, so nothing of them is remembered.
    """
    if isinstance(before.weights, MemoryWeights) or isinstance(
        after.weights, MemoryWeights
    ):
        return {}
    key = (before.fingerprint, after.fingerprint)
    lengths = _lengths.setdefault(key, {})
    _lengths.move_to_end(key)
    while len(_lengths) > _PAIRS:
        _lengths.popitem(last=False)
    return lengths


def remember_lengths(path: tuple[Checkpoint, ...]) -> None:
    """Determine all increments along a path with one checkpoint open at a time.

    One model stays in memory meanwhile. What is known already is not read again.
    """
    tensors: dict[str, Tensor] | None = None
    for before, after in pairwise(path):
        lengths = pair_lengths(before, after)
        if lengths:
            tensors = None
            continue
        if tensors is None:
            tensors = _copied(before)
        following = _copied(after)
        for name, tensor in following.items():
            if name in tensors and tensors[name].shape == tensor.shape:
                lengths[name] = norm(_double(tensor) - _double(tensors[name]))
        tensors = following


def is_bounded(path: tuple[Checkpoint, ...]) -> bool:
    """Return whether the revisions of a path come and go because their disk is bounded."""
    sources = [c.weights.source for c in path if isinstance(c.weights, HubWeights)]
    return any(
        s.slots is not None and not s.is_offline and not s.is_downloaded()
        for s in sources
    )


def norm(values: Tensor) -> float:
    """Return the Euclidean norm; NumPy's sum does not depend on the number of threads."""
    return float(np.sqrt(np.square(values.numpy()).sum()))


def _copied(checkpoint: Checkpoint) -> dict[str, Tensor]:
    with checkpoint.open() as reader:
        of = {name: reader.dtype(name) for name in reader.names()}
        names = [
            name
            for name, dtype in of.items()
            if dtype.is_floating_point or dtype.is_complex
        ]
        return {name: reader.get(name).clone() for name in names}


def _double(tensor: Tensor) -> Tensor:
    """Return numbers in double precision on the CPU; complex ones with a last dimension of two."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        return torch.view_as_real(tensor.to(torch.complex128))
    return tensor.to(torch.float64)
