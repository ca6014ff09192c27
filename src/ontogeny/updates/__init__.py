"""What a step of an optimiser does: gradients of any loss, and whether two steps commute.

For any `torch.nn.Module` and any ``loss(model, batch)``; the module is never written to.
"""

from __future__ import annotations

from .commutators import METHODS as METHODS
from .commutators import Commutator as Commutator
from .commutators import commutator as commutator
from .commutators import commutators as commutators
from .field import GradientField as GradientField
from .field import Vector as Vector
from .field import inner as inner
from .field import norm as norm
from .pairs import FEWEST as FEWEST_PAIRS
from .pairs import PairStatistics as PairStatistics
from .pairs import pair_statistics as pair_statistics

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
