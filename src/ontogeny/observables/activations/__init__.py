"""Observables of activations as they are, without concepts."""

from __future__ import annotations

from .decay import ActivationDecay as ActivationDecay
from .dimensions import EffectiveDimensions as EffectiveDimensions
from .path import ActivationPath as ActivationPath

__all__ = ["ActivationDecay", "ActivationPath", "EffectiveDimensions"]
