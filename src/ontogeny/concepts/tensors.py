"""NumPy arrays in and out of solvers that are written for PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..arrays import Array


@contextmanager
def plain_tensors() -> Iterator[None]:
    """Compute without gradients, and with ordinary tensors also in a caller's inference mode."""
    with torch.inference_mode(False), torch.no_grad():
        yield


def as_tensor(array: Array) -> Tensor:
    """Wrap without a copy where memory may be shared (read-only memory is copied)."""
    if isinstance(array, torch.Tensor):
        return array
    array = np.asarray(array)
    if array.dtype.kind == "f" and array.dtype not in (np.float64, np.float32):
        array = array.astype(np.float64)  # other byte orders and widths, which PyTorch lacks
    shared = array.flags.writeable and all(s >= 0 for s in array.strides)
    return torch.from_numpy(array if shared else array.copy())


def give(tensor: Tensor, like: Any) -> Array:
    """Return `tensor` as the kind of array that `like` is."""
    return tensor if isinstance(like, torch.Tensor) else tensor.numpy()
