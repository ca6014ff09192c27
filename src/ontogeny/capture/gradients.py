"""A model with its loss, for exclusive use, and the context that restores it afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError, CheckpointError
from ..inputs import Inputs
from ..inputs.batches import Batch
from ..needs import Gradients
from .forward import check_fits, forked_random
from .objectives import Loss, ReadingSettings, input_set, make_loss


@dataclass(frozen=True, eq=False)
class GradientReading:
    """What an observable is given for a need of `Gradients`.

    Parameters
    ----------
    model
        The module, in evaluation mode. Whatever is done to it is undone afterwards.
    inputs
        The input set as it is read (padded the way that the model takes it).
    loss
        ``loss(model, batch)``: a scalar tensor, the mean over what `batch` predicts.
    settings
        How the model is read: batch size and positions.
    """

    model: nn.Module
    inputs: Inputs
    loss: Loss
    settings: ReadingSettings = field(default_factory=ReadingSettings)

    def batch(self, rows: Any) -> Batch:
        """Return the texts `rows` as one batch."""
        return self.inputs.batch(rows)

    def draw(
        self, count: int, size: int, random_state: int = 0, together: int = 1
    ) -> list[Batch]:
        """Return `count` batches of `size` random texts, the same for the same seed.

        No text comes twice in a batch, none in two batches while there are enough of them, and
        never in two of the same group of `together` batches, such as a pair.

        Raises
        ------
        ArgumentError
            If a number is not positive, or a group needs more texts than the input set has.
        """
        total = len(self.inputs)
        if min(count, size, together) < 1 or size * together > total:
            raise ArgumentError(
                f"draw takes count >= 1 and size * together from 1 to the {total} texts of the "
                f"input set; got count={count}, size={size}, together={together}."
            )
        rng = np.random.default_rng(random_state)
        rows: list[np.ndarray] = []
        # Whole groups of batches only, so that no text is twice in `together` batches.
        used = total // (size * together) * size * together
        while len(rows) < count:
            order = rng.permutation(total)
            rows += [order[i : i + size] for i in range(0, used, size)]
        return [self.batch(np.sort(batch_rows)) for batch_rows in rows[:count]]


def gradients(
    model: nn.Module,
    need: Gradients,
    inputs: Mapping[str, Inputs],
    settings: ReadingSettings | None = None,
) -> GradientReading:
    """Return `model` with the loss that `need` names.

    Raises
    ------
    ArgumentError
        If the input set or the loss is unknown, or they do not fit the model.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> texts = {"text": Inputs.from_tokens([[1, 2, 3], [4, 5], [6, 7, 8]])}
    >>> reading = gradients(model, Gradients("next-token"), texts)
    >>> [batch.rows.tolist() for batch in reading.draw(2, size=1, random_state=0)]
    [[2], [0]]
    """
    settings = settings or ReadingSettings()
    of_need = settings.layout(Inputs.coerce(inputs[input_set(need, inputs)]))
    check_fits(model, of_need)
    loss = make_loss(model, of_need, need, position_ids=settings.positions == "mask")
    return GradientReading(model, of_need, loss, settings)


@contextmanager
def untouched(model: nn.Module) -> Iterator[nn.Module]:
    """Yield `model` with gradients enabled; afterwards it is restored, bit for bit.

    Restored, also after an error: the values, dtype and device of parameters and buffers,
    ``requires_grad``, modules that were added or replaced, hooks, modes, and PyTorch's random
    state. Gradients are cleared.

    Raises
    ------
    CheckpointError
        If a tensor could not be restored; the model must be loaded again then.

    Examples
    --------
    >>> model = nn.Linear(2, 2)
    >>> with untouched(model), torch.no_grad():
    ...     _ = model.weight.zero_()
    >>> bool(model.weight.abs().sum() > 0)
    True
    """
    saved = [_ModuleState(module) for module in model.modules()]
    try:
        with forked_random(model), torch.enable_grad():
            yield model
    finally:
        broken = list(chain.from_iterable(state.restore() for state in saved))
        if broken:
            raise CheckpointError(
                f"{type(model).__name__} could not be restored after exclusive use: {broken[:3]}."
            )


_TABLES = (
    "_parameters",
    "_buffers",
    "_modules",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


class _ModuleState:
    """One module's own tables, tensors and mode."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._training = module.training
        self._tables = {name: dict(getattr(module, name)) for name in _TABLES}
        tensors = {**module._parameters, **module._buffers}
        self._tensors = {
            name: (tensor, tensor.detach().clone(), tensor.requires_grad)
            for name, tensor in tensors.items()
            if tensor is not None
        }

    def restore(self) -> list[str]:
        """Put everything back; return the names of tensors that could not be."""
        for name, entries in self._tables.items():
            table = getattr(self._module, name)
            table.clear()
            table.update(entries)
        self._module.training = self._training
        return [name for name, saved in self._tensors.items() if not _put_back(*saved)]


def _put_back(tensor: Tensor, before: Tensor, requires_grad: bool) -> bool:
    tensor.grad = None
    if tensor.requires_grad != requires_grad:
        tensor.requires_grad_(requires_grad)
    if not _same_bits(tensor.detach(), before):
        if tensor.dtype == before.dtype and tensor.shape == before.shape:
            with torch.no_grad():
                tensor.copy_(before)
        else:
            tensor.data = before
    return _same_bits(tensor.detach(), before)


def _same_bits(a: Tensor, b: Tensor) -> bool:
    """Compare as bytes: NaN equals itself, and −0 is not 0."""
    if a.dtype != b.dtype or a.shape != b.shape or a.device != b.device:
        return False
    return torch.equal(_bytes(a), _bytes(b))


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
