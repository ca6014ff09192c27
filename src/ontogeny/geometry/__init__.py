"""Dimensions, ranks and angles, and what chance gives: of points, and of weight trajectories.

Functions of arrays only. A path of T snapshots in d dimensions enters every statistic through its
(T, T) displacement Gram matrix, so nothing here grows with d but the one pass which builds it.
"""

from .._exports import exported_names, exporter
from .rank import effective_rank, participation_ratio, singular_value_rank, stable_rank

__all__ = [
    "effective_rank",
    "stable_rank",
    "participation_ratio",
    "singular_value_rank",
    *exported_names("geometry"),
]

__getattr__ = exporter("geometry")
