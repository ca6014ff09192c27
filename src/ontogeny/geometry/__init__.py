"""Dimensions, ranks and angles, and what chance gives: of points, and of weight trajectories.

Functions of arrays only. A path of T snapshots in d dimensions enters every statistic through its
(T, T) displacement Gram matrix, so nothing here grows with d but the one pass which builds it.
"""

from __future__ import annotations

from .dimension_change import DimensionChange, dimension_change
from .drift_nulls import lag_cosine_null, line_noise_null
from .features import feature_dimensionality
from .fourier import row_frequencies
from .intrinsic import (
    IntrinsicDimension,
    SpectrumOnlyWarning,
    two_nn,
    two_nn_blocks,
    two_nn_calibrated,
    two_nn_null,
)
from .nulls import NullDistribution, early_energy_null, random_walk_null, shuffled_increments_null
from .path import (
    early_energy,
    increment_participation_ratio,
    increment_variance_rank,
    net_drift_ratio,
    variance_rank,
    variance_rank_from_gram,
    walk_participation_ratio,
)
from .projection import (
    BlockEnergies,
    SubspaceControl,
    block_matched_control,
    principal_basis,
    principal_coefficients,
    random_subspace_control,
    sampled_subspace_control,
)
from .rank import (
    effective_rank,
    gaussian_matrix_rank,
    participation_ratio,
    singular_value_rank,
    stable_rank,
)
from .snapshots import SnapshotGram, gram
from .subspaces import principal_angles, random_subspace_angles, subspace_overlap

__all__ = [
    "SnapshotGram",
    "gram",
    "variance_rank",
    "variance_rank_from_gram",
    "increment_variance_rank",
    "increment_participation_ratio",
    "walk_participation_ratio",
    "net_drift_ratio",
    "early_energy",
    "NullDistribution",
    "random_walk_null",
    "shuffled_increments_null",
    "lag_cosine_null",
    "line_noise_null",
    "early_energy_null",
    "effective_rank",
    "feature_dimensionality",
    "row_frequencies",
    "stable_rank",
    "participation_ratio",
    "singular_value_rank",
    "gaussian_matrix_rank",
    "principal_angles",
    "principal_basis",
    "principal_coefficients",
    "subspace_overlap",
    "random_subspace_angles",
    "BlockEnergies",
    "SubspaceControl",
    "random_subspace_control",
    "sampled_subspace_control",
    "block_matched_control",
    "IntrinsicDimension",
    "DimensionChange",
    "dimension_change",
    "SpectrumOnlyWarning",
    "two_nn",
    "two_nn_blocks",
    "two_nn_calibrated",
    "two_nn_null",
]
