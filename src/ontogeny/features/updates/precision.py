"""Float64 that stays float64: model code that rounds to float32 on the way is kept from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ...errors import ArgumentError

SMALL = 20_000_000
"""Up to so many parameters float64 is the default: four gradients take some seconds on a CPU."""

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)


def working_dtype(model: nn.Module, dtype: torch.dtype | str | None = None) -> torch.dtype:
    """Return the dtype that an update is computed in.

    Parameters
    ----------
    model
        Its parameters are counted.
    dtype
        ``"float32"``, ``"float64"`` or the PyTorch dtype; None is float64 for models of up to 20
        million parameters and float32 beyond.

    Raises
    ------
    ArgumentError
        If `dtype` is another one.

    Examples
    --------
    >>> working_dtype(nn.Linear(2, 2))
    torch.float64
    """
    if dtype is None:
        count = sum(p.numel() for p in model.parameters())
        return torch.float64 if count <= SMALL else torch.float32
    found = {"float32": torch.float32, "float64": torch.float64}.get(str(dtype).split(".")[-1])
    if found is None:
        raise ArgumentError(f"dtype must be 'float32', 'float64' or None; got {dtype!r}.")
    return found


class KeepDouble(TorchFunctionMode):
    """While active, casts to a narrower floating dtype become casts to float64.

    Many models compute norms, rotary positions and softmax "in float32 for precision", which would
    round a float64 computation to float32 in its middle.

    Examples
    --------
    >>> with KeepDouble():
    ...     torch.ones(1, dtype=torch.float64).float().dtype
    torch.float64
    """

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Call `func` with float64 in place of narrower dtypes."""
        if func in _CASTS:
            return args[0].double()
        args = tuple(_wide(a) for a in args)
        return func(*args, **{name: _wide(value) for name, value in (kwargs or {}).items()})


def _wide(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
