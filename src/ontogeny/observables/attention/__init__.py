"""Observables of attention maps."""

from __future__ import annotations

from .entropy import AttentionEntropy
from .readout import ReadoutAttention

__all__ = ["AttentionEntropy", "ReadoutAttention"]
