"""Choosing weight matrices by patterns over tensor names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch

from .layers import match_paths

__all__ = ["TensorReader", "match_blocks"]


class TensorReader(Protocol):
    """What is asked of an opened checkpoint."""

    def names(self) -> Iterable[str]:
        """Return the names of all tensors."""
        ...

    def shape(self, name: str) -> Sequence[int]:
        """Return the shape of one tensor."""
        ...

    def dtype(self, name: str) -> Any:
        """Return the dtype of one tensor."""
        ...


def match_blocks(reader: TensorReader, patterns: str | Sequence[str]) -> list[str]:
    """Return the names of the weight matrices that match: floating point, two or more dimensions.

    Parameters
    ----------
    reader
        An opened checkpoint.
    patterns
        The patterns of :mod:`ontogeny.capture.layers` over tensor names; ``"*.weight"`` matches
        every ``weight``, however deep.

    Raises
    ------
    LayerMatchError
        If a pattern matches no weight matrix.
    """
    matrices = [
        name
        for name in reader.names()
        if len(reader.shape(name)) >= 2 and _is_floating(reader.dtype(name))
    ]
    return match_paths(matrices, patterns, "blocks", "weight matrix")


def _is_floating(dtype: Any) -> bool:
    if isinstance(dtype, torch.dtype):
        return dtype.is_floating_point
    return str(dtype).upper().startswith(("F", "BF"))  # safetensors' own names: F32, BF16
