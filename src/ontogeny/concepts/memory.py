"""What a fit certainly holds beside its activations, and whether there is room for it."""

from __future__ import annotations

import torch

from ..errors import ArgumentError
from ..machine import free_memory

SMALL = 1 << 26
"""Bytes that are never asked for beforehand: small fits are made by the thousand."""


def check_room(name: str, needed: int, shape: tuple[int, int], like: torch.Tensor) -> None:
    """Refuse a fit of `name` that needs more bytes than its device has.

    Raises
    ------
    ArgumentError
        If the bytes that are free are known to be fewer than `needed`.
    """
    if needed <= SMALL:
        return
    free = _free_on(like.device)
    if free is not None and needed > free:
        n, m = shape
        raise ArgumentError(
            f"{name} of {n:,} x {m:,} activations holds at least {needed / 1e9:.3g} GB beside "
            f"them, and {free / 1e9:.3g} GB are free; fit fewer samples or concepts, or float32."
        )


def _free_on(device: torch.device) -> int | None:
    """Return the bytes that may still be taken on a device; None where it cannot be known."""
    if device.type == "cpu":
        return free_memory()
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    return None
