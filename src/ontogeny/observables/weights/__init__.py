"""Observables of weights: their paths, their directions, and steps of gradient descent."""

from __future__ import annotations

from .commutators import Commutators
from .frequencies import EmbeddingFrequencies
from .learning_coefficient import LearningCoefficient
from .norms import WeightNorms
from .orientation import Orientation, orientation_across_runs
from .projection import Projection
from .rank import WeightRank
from .superposition import FeatureGeometry

__all__ = [
    "Commutators",
    "EmbeddingFrequencies",
    "FeatureGeometry",
    "LearningCoefficient",
    "Orientation",
    "Projection",
    "WeightNorms",
    "WeightRank",
    "orientation_across_runs",
]
