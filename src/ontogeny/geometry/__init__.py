"""Dimensions, ranks and angles, and what chance gives: of points, and of weight trajectories.

Functions of arrays only. A path of T snapshots in d dimensions enters every statistic through its
(T, T) displacement Gram matrix, so nothing here grows with d but the one pass which builds it.
"""

from __future__ import annotations

from .drift_nulls import increment_cosines as increment_cosines
from .drift_nulls import lag_cosine_null as lag_cosine_null
from .drift_nulls import line_noise_null as line_noise_null
from .intrinsic import IntrinsicDimension as IntrinsicDimension
from .intrinsic import SpectrumOnlyWarning as SpectrumOnlyWarning
from .intrinsic import two_nn as two_nn
from .intrinsic import two_nn_blocks as two_nn_blocks
from .intrinsic import two_nn_calibrated as two_nn_calibrated
from .intrinsic import two_nn_null as two_nn_null
from .nulls import NullDistribution as NullDistribution
from .nulls import early_energy_null as early_energy_null
from .nulls import random_walk_null as random_walk_null
from .nulls import shuffled_increments_null as shuffled_increments_null
from .orientation import random_subspace_angles as random_subspace_angles
from .orientation import subspace_overlap as subspace_overlap
from .orientation import subspace_overlap_null as subspace_overlap_null
from .path import early_energy as early_energy
from .path import increment_participation_ratio as increment_participation_ratio
from .path import increment_variance_rank as increment_variance_rank
from .path import net_drift_ratio as net_drift_ratio
from .path import variance_rank as variance_rank
from .path import variance_rank_from_gram as variance_rank_from_gram
from .path import variance_rank_growing as variance_rank_growing
from .path import walk_participation_ratio as walk_participation_ratio
from .projection import BlockEnergies as BlockEnergies
from .projection import SubspaceControl as SubspaceControl
from .projection import block_matched_control as block_matched_control
from .projection import principal_basis as principal_basis
from .projection import principal_coefficients as principal_coefficients
from .projection import random_subspace_control as random_subspace_control
from .projection import sampled_subspace_control as sampled_subspace_control
from .rank import effective_rank as effective_rank
from .rank import gaussian_matrix_rank as gaussian_matrix_rank
from .rank import participation_ratio as participation_ratio
from .rank import singular_value_rank as singular_value_rank
from .rank import stable_rank as stable_rank
from .snapshots import SnapshotGram as SnapshotGram
from .snapshots import gram as gram
from .snapshots import increments_gram as increments_gram
from .subspaces import principal_angles as principal_angles

__all__ = [
    "SnapshotGram",
    "gram",
    "increments_gram",
    "variance_rank",
    "variance_rank_from_gram",
    "variance_rank_growing",
    "increment_variance_rank",
    "increment_participation_ratio",
    "walk_participation_ratio",
    "increment_cosines",
    "net_drift_ratio",
    "early_energy",
    "NullDistribution",
    "random_walk_null",
    "shuffled_increments_null",
    "lag_cosine_null",
    "line_noise_null",
    "early_energy_null",
    "effective_rank",
    "stable_rank",
    "participation_ratio",
    "singular_value_rank",
    "gaussian_matrix_rank",
    "principal_angles",
    "principal_basis",
    "principal_coefficients",
    "subspace_overlap",
    "subspace_overlap_null",
    "random_subspace_angles",
    "BlockEnergies",
    "SubspaceControl",
    "random_subspace_control",
    "sampled_subspace_control",
    "block_matched_control",
    "IntrinsicDimension",
    "SpectrumOnlyWarning",
    "two_nn",
    "two_nn_blocks",
    "two_nn_calibrated",
    "two_nn_null",
]
