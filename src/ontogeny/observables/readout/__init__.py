"""Observables of classifiers that read their answer at the last token."""

from __future__ import annotations

from .accuracy import ReadoutAccuracy as ReadoutAccuracy
from .sae_probe import SaeProbe as SaeProbe

__all__ = ["ReadoutAccuracy", "SaeProbe"]
