"""Observables of classifiers that read their answer at the last token."""

from .accuracy import ReadoutAccuracy
from .sae_probe import SaeProbe

__all__ = ["ReadoutAccuracy", "SaeProbe"]
