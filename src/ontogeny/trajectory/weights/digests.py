"""Content digests of tensors, and where they are not finite."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import torch
from torch import Tensor

from .files import Reader, WeightFiles, Weights

_CHUNK = 1 << 18  # elements checked together: what the cache of a core holds


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
    seen = chain.from_iterable(_parts(weights).values())
    return dict(sorted((name, digest) for name, digest, _ in seen))


def shard_digests(weights: Weights) -> dict[str, str]:
    """Return ``{file name: digest over its tensors}``; nothing for tensors in memory."""
    parts = {} if weights.on_disk() is None else _parts(weights)
    return {
        file: combine({name: digest for name, digest, _ in part})
        for file, part in parts.items()
    }


def non_finite(weights: Weights) -> tuple[str, ...]:
    """Return the names of the tensors that hold NaN or infinity, sorted."""
    if (
        weights.on_disk() is None
    ):  # nothing is remembered of it, and digests take the time
        with weights.open() as reader:
            names = reader.names()
            return tuple(sorted(n for n in names if not _is_finite(reader.get(n))))
    seen = chain.from_iterable(_parts(weights).values())
    return tuple(sorted(name for name, _, is_finite in seen if not is_finite))


# Of a tensor: its name, its digest, and whether all of it is finite.
Seen: TypeAlias = tuple[str, str, bool]
_FILES = 4096  # of which a process knows what it has seen
_known: OrderedDict[tuple[WeightFiles, tuple[object, ...]], tuple[Seen, ...]] = (
    OrderedDict()
)


def _parts(weights: Weights) -> dict[str, tuple[Seen, ...]]:
    """Return what is seen of the tensors of every weight file in one reading, by file name."""
    files = weights.on_disk()
    if files is None:
        with weights.open() as reader:
            return {"": _seen(reader)}
    return {one.files[0].name: _of_files(one) for one in files.apart()}


def _of_files(files: WeightFiles) -> tuple[Seen, ...]:
    key = files, files.stamp()
    if (seen := _known.get(key)) is None:
        with files.open() as reader:
            seen = _seen(reader)
        _know(key, seen)
    return seen


def _know(key: tuple[WeightFiles, tuple[object, ...]], seen: tuple[Seen, ...]) -> None:
    _known[key] = seen
    while len(_known) > _FILES:
        _known.popitem(last=False)


def seen_of(files: WeightFiles) -> list[list[Seen]]:
    """Return what is seen of the tensors of each weight file, in their order."""
    return [list(_of_files(one)) for one in files.apart()]


def remember(files: WeightFiles, seen: Sequence[Sequence[Seen]]) -> None:
    """Take what another process has seen in files that stayed, so that they are not read for it."""
    for one, part in zip(files.apart(), seen, strict=True):
        _know((one, one.stamp()), tuple((n, d, is_finite) for n, d, is_finite in part))


def _seen(reader: Reader) -> tuple[Seen, ...]:
    seen: list[Seen] = []
    for name in reader.names():
        tensor = reader.get(name)
        seen.append((name, digest(tensor), _is_finite(tensor)))
    return tuple(seen)


def _is_finite(tensor: Tensor) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    if not tensor.ndim:  # GPT-NeoX's masked_bias, -1e9, is -inf in half precision
        return not bool(tensor.isnan() | tensor.isposinf())
    flat = tensor.detach().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    return all(_has_finite_ends(chunk) for chunk in flat.split(_CHUNK) if len(chunk))


def _has_finite_ends(chunk: Tensor) -> bool:
    """Return whether the least and the largest number are finite, and so all between them.

    NaN is both. In half precision this takes a tenth of the time of asking each number.
    """
    # PyTorch compares no numbers of eight bits.
    least, largest = torch.aminmax(chunk if chunk.itemsize > 1 else chunk.float())
    return bool(least.isfinite() & largest.isfinite())
