"""Bringing matrices of any size to one where products neither overflow nor vanish."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import ArgumentError

RANGES = {torch.float32: (1e-30, 1e30), torch.float64: (1e-290, 1e290)}  # of largest entries
SAFE_EXPONENT = 20  # squares of entries between 2^-20 and 2^20 neither overflow nor vanish
START_EXPONENT = 40  # a start that is larger or smaller by more is brought nearer to A


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name as NumPy and PyTorch share it.

    Examples
    --------
    >>> dtype_name(torch.float32)
    'float32'
    """
    return str(dtype).removeprefix("torch.")


def check_range(A: Tensor) -> None:
    """Refuse a matrix whose factors would not be numbers of its dtype.

    Raises
    ------
    ArgumentError
        If the largest entry of a matrix that is not zero is too small or too large.
    """
    largest = A.abs().max()
    low, high = RANGES[A.dtype]
    if bool((largest > 0) & ((largest < low) | (largest > high))):
        raise ArgumentError(
            f"the largest entry of X must lie between {low:.0e} and {high:.0e} in "
            f"{dtype_name(A.dtype)} (or be 0); it is {float(largest):.3g}. "
            "Multiply X by a constant."
        )


def power_of_two(A: Tensor) -> Tensor:
    """Return 1, or the power of two near the largest entry of A if that entry is extreme.

    Examples
    --------
    >>> float(power_of_two(torch.tensor([[3.0]]))), float(power_of_two(torch.tensor([[3e9]])))
    (1.0, 2147483648.0)
    """
    largest = A.abs().max()
    exponent = torch.where(largest > 0, torch.frexp(largest).exponent - 1, 0)
    exponent = torch.where(exponent.abs() > SAFE_EXPONENT, exponent, 0)
    return torch.ldexp(torch.ones_like(largest), exponent)


def within_reach(start: Tensor) -> Tensor:
    """Return a start (m, r) whose largest entry lies between 2^-41 and 2^40."""
    largest = start.abs().max()
    exponent = torch.where(largest > 0, torch.frexp(largest).exponent, 0)
    excess = exponent - exponent.clamp(-START_EXPONENT, START_EXPONENT)
    return torch.ldexp(start, -excess) if bool(excess != 0) else start
