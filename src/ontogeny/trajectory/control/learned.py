"""Which tensors of a checkpoint a run learns: the others are no motion of the optimiser's."""

from __future__ import annotations

import functools

import torch
from torch import nn

from ..checkpoint import Checkpoint
from ..hub.remote_code import RemoteModel
from ..weights.building import Template, instantiate
from ..weights.files import MemoryWeights, state_tensors

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def kept_names(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the names of buffers, which a module has beside its parameters.

    They are known of a module in memory and of one given as ``model=``; otherwise only running
    statistics are recognised, by their names (see `is_learned`).
    """
    source = checkpoint.weights.source if isinstance(checkpoint.weights, MemoryWeights) else None
    if isinstance(source, nn.Module):
        return _buffers(source)
    template = checkpoint.template
    if template is None or isinstance(template, RemoteModel):
        return frozenset()
    return _buffers(template) if isinstance(template, nn.Module) else _buffers_built(template)


def is_learned(name: str, dtype: torch.dtype, kept: frozenset[str]) -> bool:
    """Return whether tensor `name` is a parameter, by its dtype and what is known of it.

    Examples
    --------
    >>> is_learned("bn.running_mean", torch.float32, frozenset())
    False
    """
    if not (dtype.is_floating_point or dtype.is_complex) or name in kept:
        return False
    return name.rpartition(".")[2] not in _STATISTICS


def _buffers(module: nn.Module) -> frozenset[str]:
    tensors = state_tensors(module)
    return frozenset(n for n, t in tensors.items() if not isinstance(t, nn.Parameter))


@functools.lru_cache(maxsize=8)
def _buffers_built(template: Template) -> frozenset[str]:
    return _buffers(instantiate(template))
