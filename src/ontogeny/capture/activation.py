"""Activations: the outputs of modules at chosen tokens, gathered inside the forward pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError, NonFiniteError
from ..inputs import Inputs
from ..inputs.batches import Batch
from ..inputs.sampling import TokenSample
from ..machine import free_memory
from ..scratch import scratch_array
from .collect import Collector
from .forward import first_tensor, without_added


class ActivationCollector(Collector):
    """Copies the sampled rows of module outputs into one float32 buffer per layer.

    Parameters
    ----------
    paths
        Modules; each must give (batch, tokens, features), or a tuple that starts with it.
    inputs, sample
        The input set and which of its tokens are kept. Rows at position -1 are means over the
        ordinary tokens of a text, taken in float32.
    device
        Where the buffers live.
    """

    def __init__(
        self,
        paths: Sequence[str],
        inputs: Inputs,
        sample: TokenSample,
        device: torch.device | str,
    ) -> None:
        self.paths = tuple(paths)
        self._sample = sample
        self._mean = bool((sample.position < 0).any())
        self._ordinary = inputs.ordinary
        self._device = torch.device(device)
        self._buffers: dict[str, Tensor] = {}
        self._tensors: dict[str, Tensor] = {}
        self._awaited: set[str] = set()

    def start(self, batch: Batch) -> set[str]:
        """Find the sampled rows of this batch."""
        row, slot = sampled_rows(self._sample, batch)
        self._shape = batch.ids.shape
        self._slot = torch.from_numpy(slot).to(self._device)
        if self._mean:
            keep = self._ordinary[batch.rows, batch.columns][row]
            self._row = torch.from_numpy(row)
            self._keep = torch.from_numpy(keep)
        else:
            column = batch.first[row] + self._sample.position[slot]
            self._index = torch.from_numpy(row * self._shape[1] + column)
        self._awaited = set(self.paths) if len(slot) else set()
        self._taken: set[str] = set()
        return set(self._awaited)

    def take(self, path: str, output: Any) -> None:
        """Copy the sampled rows out of one module's output."""
        if path in self._taken:
            raise ArgumentError(
                f"{path!r} is called more than once in one forward pass, so its activations are "
                f"not one matrix; choose one of its calls, such as '{path}@0'."
            )
        if path not in self._awaited:
            return
        self._taken.add(path)
        hidden = _check_shape(path, first_tensor(output), self._shape)
        rows = self._means(hidden) if self._mean else self._gather(hidden)
        if path in self._buffers:
            self._put(path, rows)
        else:
            self._tensors[path] = rows

    def _put(self, path: str, rows: Tensor) -> None:
        self._buffers[path].index_copy_(0, self._slot, rows.to(self._device))

    def _gather(self, hidden: Tensor) -> Tensor:
        self._index = self._index.to(hidden.device)
        return hidden.flatten(0, 1).index_select(0, self._index).float()

    def _means(self, hidden: Tensor) -> Tensor:
        row = self._row.to(hidden.device)
        keep = self._keep.to(hidden.device)
        # Filled, not multiplied: padding may hold NaN where a kernel saw no key at all.
        tokens = hidden.index_select(0, row).float().masked_fill(~keep[..., None], 0.0)
        return tokens.sum(dim=1) / keep.sum(dim=1, keepdim=True)

    def finish(self, output: Any) -> None:
        """Make the buffers once their widths are known.

        Between passes, not within one: there they would lie among the model's own temporaries and
        cost it up to a tenth of its time in page faults.
        """
        shapes = {
            p: (len(self._sample), rows.shape[1]) for p, rows in self._tensors.items()
        }
        self._buffers |= sample_buffers(shapes, self._device)
        for path, rows in self._tensors.items():
            self._put(path, rows)
        self._tensors.clear()

    def result(self) -> dict[str, Tensor]:
        """Return ``{path: (rows, features)}``.

        Raises
        ------
        NonFiniteError
            If a layer gave NaN or infinity.
        """
        for path, buffer in self._buffers.items():
            low, high = torch.aminmax(buffer)  # one pass; NaN comes through
            if not (torch.isfinite(low) and torch.isfinite(high)):
                self._refuse(path, buffer)
        return {path: self._buffers[path] for path in self.paths}

    def _refuse(self, path: str, buffer: Tensor) -> None:
        bad = (~torch.isfinite(buffer)).any(dim=1).nonzero().flatten().cpu().numpy()
        text = self._sample.text[bad[0]]
        position = self._sample.position[bad[0]]
        where = f"text {text}" + ("" if position < 0 else f", token {position}")
        raise NonFiniteError(
            f"layer {path!r} gives NaN or infinity in {len(bad)} of {len(buffer)} rows; "
            f"the first is {where}."
        )


def sampled_rows(sample: TokenSample, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a sample that lie in a batch: row of the batch, and row of the sample.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[1], [1, 2], [1, 2, 3]])
    >>> row, slot = sampled_rows(inputs.sample(), inputs.batch([2, 0]))
    >>> row.tolist(), slot.tolist()
    ([0, 0, 0, 1], [3, 4, 5, 0])
    """
    low = np.searchsorted(sample.text, batch.rows, side="left")
    high = np.searchsorted(sample.text, batch.rows, side="right")
    row = np.repeat(np.arange(len(batch.rows)), high - low)
    return row, np.concatenate(
        [np.arange(a, b) for a, b in zip(low, high, strict=True)]
    )


def _check_shape(path: str, hidden: Any, shape: tuple[int, ...]) -> Tensor:
    if not isinstance(hidden, Tensor):
        raise ArgumentError(f"{path!r} gives {type(hidden).__name__}, not a tensor.")
    hidden = without_added(hidden, shape)
    if hidden.ndim != 3 or tuple(hidden.shape[:2]) != tuple(shape):
        raise ArgumentError(
            f"{path!r} must give (texts, tokens, features) = ({shape[0]}, {shape[1]}, m); "
            f"its output has shape {tuple(hidden.shape)}."
        )
    return hidden


SHARE = 0.5  # share of the free memory that samples may take: fits and the reference need the rest


def sample_buffers(
    shapes: Mapping[str, tuple[int, int]], device: torch.device
) -> dict[str, Tensor]:
    """Return a float32 tensor for the sample of each layer, with the same numbers to come.

    In the order of the layers, what goes beyond half of the free memory lies in files: the system
    writes their pages to disk and reads them again as it needs room. Samples on a GPU stay there.

    Raises
    ------
    ArgumentError
        If neither memory nor disk has room.

    Examples
    --------
    >>> sample_buffers({"mlp": (3, 2)}, torch.device("cpu"))["mlp"].shape
    torch.Size([3, 2])
    """
    free = free_memory() if device.type == "cpu" else None
    budget = math.inf if free is None else SHARE * free
    buffers = {}
    for path, shape in shapes.items():
        size = 4 * math.prod(shape)
        if size <= budget:
            buffers[path] = torch.empty(shape, dtype=torch.float32, device=device)
            budget -= size
        else:
            buffers[path] = _in_a_file(path, shape, size)
    return buffers


def _in_a_file(path: str, shape: tuple[int, int], size: int) -> Tensor:
    try:
        return torch.from_numpy(scratch_array(shape, np.float32))
    except OSError as error:
        raise ArgumentError(
            f"the sample of {path!r} takes {size / 1e9:.3g} GB, and neither memory nor the folder "
            f"of temporary files has room for it ({error.strerror}); lower max_tokens, take fewer "
            "layers, or let TMPDIR name a folder on a larger disk."
        ) from error
