"""Bringing matrices of any size to one where products neither overflow nor vanish."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..errors import ArgumentError

# Of largest entries.
RANGES = {torch.float32: (1e-30, 1e30), torch.float64: (1e-290, 1e290)}
# Squares of entries between 2^-20 and 2^20 neither overflow nor vanish.
SAFE_EXPONENT = 20
START_EXPONENT = 40  # a start that is larger or smaller by more is brought nearer to A


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name as NumPy and PyTorch share it.

    Examples
    --------
    >>> dtype_name(torch.float32)
    'float32'
    """
    return str(dtype).removeprefix("torch.")


def check_range(A: Tensor) -> float:
    """Refuse a matrix whose factors would not be numbers of its dtype; return its largest entry.

    Raises
    ------
    ArgumentError
        If the largest entry of a matrix that is not zero is too small or too large.
    """
    # A.abs() would be a copy of A.
    largest = float(torch.stack(torch.aminmax(A)).abs().max())
    low, high = RANGES[A.dtype]
    if largest > 0 and not low <= largest <= high:
        raise ArgumentError(
            f"the largest entry of X must lie between {low:.0e} and {high:.0e} in "
            f"{dtype_name(A.dtype)} (or be 0); it is {largest:.3g}. Multiply X by a constant."
        )
    return largest


def power_of_two(largest: float) -> float:
    """Return 1, or the power of two near the largest entry of a matrix if that entry is extreme.

    Examples
    --------
    >>> power_of_two(3.0), power_of_two(3e9)
    (1.0, 2147483648.0)
    """
    exponent = math.frexp(largest)[1] - 1 if largest > 0 else 0
    return 2.0**exponent if abs(exponent) > SAFE_EXPONENT else 1.0


def within_reach(start: Tensor) -> Tensor:
    """Return a start (m, r) whose largest entry lies between 2^-41 and 2^40."""
    largest = start.abs().max()
    exponent = torch.where(largest > 0, torch.frexp(largest).exponent, 0)
    excess = exponent - exponent.clamp(-START_EXPONENT, START_EXPONENT)
    return torch.ldexp(start, -excess) if bool(excess != 0) else start
