"""One checkpoint of a training run, as a value."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from . import digests
from .building import Template, build, check_dtype
from .configuration import read_configuration
from .weights import MemoryWeights, Reader, Weights

__all__ = ["Checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """The weights of a model after `step` updates; made by a `Trajectory`.

    Attributes
    ----------
    step
        Number of optimiser updates done.
    label
        How messages and figures call it, such as ``"checkpoint-500"`` or ``"step 500"``.
    path
        Its folder, or None if it lives in memory.

    Examples
    --------
    >>> from ontogeny import Trajectory
    >>> checkpoint = Trajectory.from_models({7: nn.Linear(3, 2)})[7]
    >>> checkpoint.label, checkpoint.model().training
    ('step 7', False)
    >>> with checkpoint.open() as tensors:
    ...     tensors.shape("weight"), tensors.rows("weight", 0, 1).shape
    ((2, 3), torch.Size([1, 3]))
    """

    step: int
    label: str
    path: Path | None
    weights: Weights = field(repr=False)
    template: Template | None = field(default=None, repr=False, compare=False)

    def model(
        self, device: str | torch.device = "cpu", dtype: torch.dtype | None = None
    ) -> nn.Module:
        """Return a fresh module in eval mode that shares nothing with any other.

        Parameters
        ----------
        device
            Where its tensors go.
        dtype
            Floating-point dtype of the weights; None keeps the stored one.

        Raises
        ------
        CheckpointError
            If any weight is missing, newly initialised or of another shape.
        """
        check_dtype(dtype)
        return build(self.label, self.weights, self.path, self.template, dtype).to(device)

    def digests(self) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by content: dtype, shape and bytes.

        Names are those of the file. Files are hashed once in a process, as long as their sizes
        and modification times stay.
        """
        return digests.tensor_digests(self.weights)

    def open(self) -> AbstractContextManager[Reader]:
        """Open the tensors for reading one by one, or some rows of one.

        The reader has ``names()``, ``shape(name)``, ``dtype(name)``, ``get(name)`` and
        ``rows(name, start, stop)``; files are memory-mapped.
        """
        return self.weights.open()

    def configuration(self) -> dict[str, Any] | None:
        """Return the configuration that defines the model, or None if there is none.

        Keys that say nothing about the model (paths, library versions) are left out.
        """
        if isinstance(self.weights, MemoryWeights):
            source = self.weights.source
            return read_configuration(source if isinstance(source, nn.Module) else None)
        return read_configuration(self.path)
