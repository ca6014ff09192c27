"""Observables of labelled concepts: their directions, and their influence."""

from __future__ import annotations

from .directions import ConceptDirections
from .tcav import TCAV

__all__ = ["TCAV", "ConceptDirections"]
