"""NumPy arrays in and out of solvers that are written for PyTorch, and tensors of other devices.

And what a fit certainly holds beside its activations, and whether there is room for it.

A number of a GPU that is read on the host makes the host wait until everything before it is
computed. Loops therefore decide by ``known`` and ``select``, which read flags on the CPU only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..arrays import Array
from ..errors import ArgumentError
from ..machine import free_memory

Values = TypeVar("Values", bound=tuple[Tensor, ...])

WITHOUT_DOUBLE = {"mps"}  # devices that have no float64


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


def on_cpu(tensor: Tensor) -> bool:
    """Return whether the numbers are at hand: reading one waits for no device.

    Examples
    --------
    >>> on_cpu(torch.ones(2))
    True
    """
    return tensor.device.type == "cpu"


def precise(tensor: Tensor) -> Tensor:
    """Return the tensor in float64, or as it is on a device that has no float64.

    For sums and for small matrices: many GPUs compute in float64 at a fraction of their speed.

    Examples
    --------
    >>> precise(torch.ones(2)).dtype
    torch.float64
    """
    return tensor if tensor.device.type in WITHOUT_DOUBLE else tensor.double()


def known(flag: Tensor) -> bool | None:
    """Return a flag where reading it waits for no device, elsewhere None.

    Examples
    --------
    >>> known(torch.tensor(False))
    False
    """
    return bool(flag) if on_cpu(flag) else None


def select(flag: Tensor, yes: Values, no: Values) -> Values:
    """Return the tensors `yes` where the flag is set, else the tensors `no`.

    Examples
    --------
    >>> one, two = torch.tensor(1), torch.tensor(2)
    >>> select(one > two, (one,), (two,))
    (tensor(2),)
    """
    if on_cpu(flag):
        return yes if flag else no
    pairs = zip(yes, no, strict=True)
    return tuple(torch.where(flag, *pair) for pair in pairs)  # type: ignore[return-value]


def give(tensor: Tensor, like: Any) -> Array:
    """Return `tensor` as the kind of array that `like` is."""
    return tensor if isinstance(like, torch.Tensor) else tensor.numpy()


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
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + reserved
    return None
