"""Content digests of tensors, and where they are not finite."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable

import torch
from torch import Tensor

from .weights import Reader, WeightFiles, Weights

__all__ = ["digest", "non_finite", "tensor_digests"]

_CHUNK = 1 << 22  # elements looked at together, so that no temporary is as large as an embedding


def digest(tensor: Tensor) -> str:
    """Return blake2b (128 bits, hexadecimal) over dtype, shape and bytes of `tensor`.

    Examples
    --------
    >>> (
    ...     digest(torch.zeros(2)) == digest(torch.zeros(2)),
    ...     digest(torch.zeros(2)) == digest(torch.zeros(1, 2)),
    ... )
    (True, False)
    """
    tensor = tensor.detach().cpu().contiguous()
    state = hashlib.blake2b(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), digest_size=16)
    state.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def tensor_digests(weights: Weights) -> dict[str, str]:
    """Return ``{tensor name: digest}`` of all tensors.

    Files are hashed once in a process, as long as path, size and modification time stay.
    """
    if isinstance(weights, WeightFiles):
        return dict(_of_files(_digests, weights, weights.stamp()))
    with weights.open() as reader:
        return dict(_digests(reader))


def non_finite(weights: Weights) -> tuple[str, ...]:
    """Return the names of the tensors that hold NaN or infinity, sorted."""
    if isinstance(weights, WeightFiles):
        return _of_files(_non_finite, weights, weights.stamp())
    with weights.open() as reader:
        return _non_finite(reader)


@functools.lru_cache(maxsize=4096)
def _of_files(
    function: Callable[[Reader], tuple], files: WeightFiles, stamp: tuple[object, ...]
) -> tuple:
    with files.open() as reader:
        return function(reader)


def _digests(reader: Reader) -> tuple[tuple[str, str], ...]:
    return tuple((name, digest(reader.get(name))) for name in reader.names())


def _non_finite(reader: Reader) -> tuple[str, ...]:
    return tuple(name for name in reader.names() if not _is_finite(reader.get(name)))


def _is_finite(tensor: Tensor) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    flat = tensor.detach().reshape(-1)
    return all(bool(chunk.isfinite().all()) for chunk in flat.split(_CHUNK))
