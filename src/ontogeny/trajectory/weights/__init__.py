"""Weights of one checkpoint: reading and writing files, digests, and modules that hold them."""

from .building import promoted, widest
from .files import (
    MemoryWeights,
    Reader,
    TensorReader,
    WeightFiles,
    Weights,
    state_tensors,
)
from .folders import find_weights

__all__ = [
    "MemoryWeights",
    "Reader",
    "TensorReader",
    "WeightFiles",
    "Weights",
    "find_weights",
    "promoted",
    "state_tensors",
    "widest",
]
