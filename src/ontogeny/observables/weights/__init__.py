"""Observables of weights: their paths, their directions, and steps of gradient descent."""

from __future__ import annotations

from .commutators import Commutators as Commutators
from .orientation import Orientation as Orientation
from .orientation import orientation_across_runs as orientation_across_runs
from .projection import Projection as Projection
from .rank import WeightRank as WeightRank

__all__ = ["Commutators", "Orientation", "Projection", "WeightRank", "orientation_across_runs"]
