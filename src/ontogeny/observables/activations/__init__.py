"""Observables of activations as they are, without concepts."""

from __future__ import annotations

from .between_layers import LayerSimilarity
from .between_steps import StepSimilarity
from .decay import ActivationDecay
from .dimensions import EffectiveDimensions
from .path import ActivationPath
from .similarity import Similarity

__all__ = [
    "ActivationDecay",
    "ActivationPath",
    "EffectiveDimensions",
    "LayerSimilarity",
    "Similarity",
    "StepSimilarity",
]
