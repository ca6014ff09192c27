"""Observables of what a model predicts."""

from __future__ import annotations

from .answers import Predictions
from .loss import Loss
from .token_losses import TokenLosses

__all__ = ["Loss", "Predictions", "TokenLosses"]
