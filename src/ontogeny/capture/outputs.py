"""How far two outputs of a model are apart, beyond what rounding explains."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from .forward import first_tensor
from .logits import logits_of

# Largest change, relative to the norm, that rounding explains: both are rows of one pass.
ROUNDING = 1e-5
HALF_ROUNDING = 1e-3


def output_tensor(output: Any) -> Tensor | None:
    """Return the logits of a model's output, or else what it gives first."""
    tensor = logits_of(output)
    tensor = first_tensor(output) if tensor is None else tensor
    return tensor if isinstance(tensor, Tensor) and tensor.is_floating_point() else None


def relative_change(first: Tensor, second: Tensor) -> float:
    """Return the norm of the difference, relative to that of the first, which may be NaN.

    Examples
    --------
    >>> import torch
    >>> relative_change(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 9.0]))
    1.0
    """
    first, second = (tensor.detach().cpu().double() for tensor in (first, second))
    size = max(float(first.norm()), float(np.finfo(np.float32).tiny))
    return float((first - second).norm()) / size


def apart(first: Any, second: Any, kernels: float = 1.0) -> float:
    """Return how far apart two outputs for the same text are, 0 where rounding explains it.

    Other `kernels` may round so many times as much.
    """
    one = output_tensor(first)
    other = output_tensor(second)
    if one is None or other is None or one.shape != other.shape:
        return 0.0
    change = relative_change(one, other)
    allowed = kernels * (ROUNDING if one.element_size() >= 4 else HALF_ROUNDING)
    return change if np.isfinite(change) and change > allowed else 0.0
