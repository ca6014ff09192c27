"""What a step of an optimiser does: gradients of any loss, and whether two steps commute.

For any `torch.nn.Module` and any ``loss(model, batch)``; the module is never written to.
"""

from __future__ import annotations

from .commutators import METHODS, Commutator, commutator, commutators
from .field import GradientField, Vector, inner, norm
from .pairs import FEWEST as FEWEST_PAIRS
from .pairs import PairStatistics, pair_statistics

__all__ = [
    "FEWEST_PAIRS",
    "METHODS",
    "Commutator",
    "GradientField",
    "PairStatistics",
    "Vector",
    "commutator",
    "commutators",
    "inner",
    "norm",
    "pair_statistics",
]
