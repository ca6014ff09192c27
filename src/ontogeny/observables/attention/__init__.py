"""Observables of attention maps."""

from __future__ import annotations

from .entropy import AttentionEntropy as AttentionEntropy
from .readout import ReadoutAttention as ReadoutAttention

__all__ = ["AttentionEntropy", "ReadoutAttention"]
