"""Observables of the curves that other observables found."""

from __future__ import annotations

from .base import OfCurve as OfCurve
from .fits import Fits as Fits
from .learning import LearningDynamics as LearningDynamics
from .regimes import Regimes as Regimes
from .signals import Signals as Signals

__all__ = ["Fits", "LearningDynamics", "OfCurve", "Regimes", "Signals"]
