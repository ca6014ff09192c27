"""Observables of what a model predicts."""

from __future__ import annotations

from .loss import Loss

__all__ = ["Loss"]
