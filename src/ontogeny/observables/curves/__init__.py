"""Observables of the curves that other observables found."""

from __future__ import annotations

from .fits import Fits
from .learning import LearningDynamics
from .regimes import Regimes
from .signals import Signals

__all__ = ["Fits", "LearningDynamics", "Regimes", "Signals"]
