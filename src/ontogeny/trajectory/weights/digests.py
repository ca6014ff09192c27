"""Content digests of tensors, and where they are not finite."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .files import Reader, WeightFiles, Weights

_CHUNK = 1 << 22  # elements checked together, to keep temporary arrays small


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
    state = hashlib.blake2b(
        f"{tensor.dtype} {tuple(tensor.shape)}".encode(), digest_size=16
    )
    state.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def combine(parts: Mapping[str, str]) -> str:
    """Return one digest of several, whatever their order.

    Examples
    --------
    >>> combine({"a": "1", "b": "2"}) == combine({"b": "2", "a": "1"})
    True
    """
    text = json.dumps(sorted(parts.items()))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tensor_digests(weights: Weights) -> dict[str, str]:
    """Return ``{tensor name: digest}`` of all tensors.

    Files are hashed once in a process, as long as path, size and modification time stay.

    Raises
    ------
    CheckpointError
        If a file is damaged or not on this machine.
    """
    return dict(
        sorted(pair for part in _parts(_digests, weights).values() for pair in part)
    )


def shard_digests(weights: Weights) -> dict[str, str]:
    """Return ``{file name: digest over its tensors}``; nothing for tensors in memory."""
    parts = {} if weights.on_disk() is None else _parts(_digests, weights)
    return {name: combine(dict(part)) for name, part in parts.items()}


def non_finite(weights: Weights) -> tuple[str, ...]:
    """Return the names of the tensors that hold NaN or infinity, sorted."""
    return tuple(
        sorted(name for part in _parts(_non_finite, weights).values() for name in part)
    )


def _parts(function: Callable[[Reader], tuple], weights: Weights) -> dict[str, tuple]:
    """Return the result of `function` for every weight file, by file name."""
    files = weights.on_disk()
    if files is None:
        with weights.open() as reader:
            return {"": function(reader)}
    return {
        one.files[0].name: _of_files(function, one, one.stamp())
        for one in files.apart()
    }


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
    if not tensor.ndim:  # GPT-NeoX's masked_bias, -1e9, is -inf in half precision
        return not bool(tensor.isnan() | tensor.isposinf())
    chunks = tensor.detach().reshape(-1).split(_CHUNK)
    # PyTorch does not ask numbers of eight bits.
    return all(
        bool((c if c.itemsize > 1 else c.float()).isfinite().all()) for c in chunks
    )
