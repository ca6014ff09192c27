"""Tensors that are one and the same under several names."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ..weights.files import MemoryWeights, Reader, Weights, state_tensors

_SAMPLE = 64  # values that two tensors are compared by first


def first_names(weights: Weights, reader: Reader) -> dict[str, str]:
    """Return, for each name of an opened checkpoint, the first name of the same tensor.

    Tensors of modules, state dicts and pickled files are the same if they share memory. In
    safetensors, where nothing is shared, matrices are the same if they are equal at this
    checkpoint and not constant: models that tie them are stored so by some programs.

    Examples
    --------
    >>> state = {"embed": torch.rand(3, 2), "norm": torch.ones(2)}
    >>> weights = MemoryWeights({**state, "head": state["embed"]})
    >>> with weights.open() as reader:
    ...     first_names(weights, reader)
    {'embed': 'embed', 'norm': 'norm', 'head': 'embed'}
    """
    groups: dict[object, str] = {}
    first = {}
    for name in _order(weights, reader):
        tensor = reader.get(name)
        first[name] = groups.setdefault(_place(tensor), name) if tensor.numel() else name
    by_value: dict[object, list[str]] = {}
    for name in dict.fromkeys(first.values()):
        sample = _sample(reader, name)
        for other in by_value.setdefault(sample, []) if sample else ():
            if torch.equal(reader.get(name), reader.get(other)):
                first = {n: other if f == name else f for n, f in first.items()}
                break
        else:
            by_value.setdefault(sample, []).append(name)
    return first


def _order(weights: Weights, reader: Reader) -> Iterable[str]:
    """Return names in the order of the model, where it is known, so that embeddings come first."""
    if not isinstance(weights, MemoryWeights):
        return reader.names()
    source = weights.source
    return state_tensors(source) if isinstance(source, nn.Module) else source


def _place(tensor: Tensor) -> object:
    return (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _sample(reader: Reader, name: str) -> object:
    """Return what equal matrices share, or None for what is constant or no matrix."""
    shape = reader.shape(name)
    if len(shape) < 2 or 0 in shape:
        return None
    values = reader.rows(name, 0, 1).detach().cpu().reshape(-1)[:_SAMPLE]
    if values.is_complex() or bool((values == values[0]).all()):
        return None
    return (shape, reader.dtype(name), tuple(values.double().tolist()))
