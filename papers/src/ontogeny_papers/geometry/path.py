"""Statistics of one weight trajectory: how many directions it takes, how straight it goes."""

from __future__ import annotations

import numpy as np

from ontogeny.arrays import Array
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.geometry.rank import (
    ROUNDING,
    centred,
    components_holding,
    participation_ratio,
)

from .snapshots import check_gram, increments_gram
from .snapshots import gram as displacement_gram
from .spectra import descending_eigenvalues


def variance_rank(snapshots: Array, variance: float = 0.9) -> int:
    """Return r90: the number of principal components that hold `variance` of the snapshots.

    Called the effective rank by Xu (2026, sec. 3.3.1). It depends on the number of snapshots and
    their spacing, and a plain random walk in many dimensions has r90 = 6: compare it with
    `random_walk_null` and `shuffled_increments_null`.

    Parameters
    ----------
    snapshots
        A weight block at T steps, (T, ...); may be memory-mapped. Memory is bounded by the (T, T)
        Gram matrix.
    variance
        Share of the summed variance, in (0, 1].

    Returns
    -------
    int
        1 to T−1; 0 where the snapshots are all the same.

    Raises
    ------
    ArgumentError, NonFiniteError
        If the snapshots have no second dimension, are empty, or not finite.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.ones(50)
    >>> variance_rank(line)
    1
    """
    return variance_rank_from_gram(displacement_gram(snapshots), variance)


def variance_rank_from_gram(gram: np.ndarray, variance: float = 0.9) -> int:
    """Return `variance_rank` of the path with the displacement Gram matrix `gram` (T, T).

    Examples
    --------
    >>> variance_rank_from_gram(displacement_gram(np.eye(11)))
    9
    """
    values = descending_eigenvalues(centred(check_gram(gram)))
    return int(components_holding(variance, values))


def increment_variance_rank(gram: np.ndarray, variance: float = 0.9) -> int:
    """Return how many directions hold `variance` of the squared length of the increments.

    The increments are not centred: their mean, the drift, is part of the weight change.

    Examples
    --------
    >>> increment_variance_rank(displacement_gram(np.tri(11)))
    9
    """
    values = descending_eigenvalues(increments_gram(check_gram(gram)))
    return int(components_holding(variance, values))


def increment_participation_ratio(gram: np.ndarray) -> float:
    """Return (Σλ)² / Σλ² over the eigenvalues of the increments' Gram matrix (not centred).

    T−1 for increments that are orthogonal and equally long, 1 for a straight line.

    Examples
    --------
    >>> increment_participation_ratio(displacement_gram(np.tri(11)))
    10.0
    """
    values = descending_eigenvalues(increments_gram(check_gram(gram)))
    return participation_ratio(spectrum=np.sqrt(values))


def walk_participation_ratio(gram: np.ndarray, dimension: int) -> float:
    """Return `increment_participation_ratio` of a random walk with the same step lengths.

    (Σl²)² / (Σl⁴ + Σ_{i≠j} l_i² l_j² / d): expected denominators for steps l in independent uniform
    directions of d dimensions. The increments of a run that keep below it share directions.

    Parameters
    ----------
    gram
        Displacement Gram matrix (T, T).
    dimension
        Number of coordinates d.

    Raises
    ------
    ArgumentError
        If `dimension` is not a positive whole number.

    Examples
    --------
    >>> walk_participation_ratio(displacement_gram(np.tri(11)), dimension=10**9) > 9.99
    True
    """
    dimension = check_whole("dimension", dimension)
    squares = np.maximum(np.diagonal(increments_gram(check_gram(gram))), 0.0)
    whole = float(squares.sum()) ** 2
    fourth = float(np.sum(squares**2))
    return whole / (fourth + (whole - fourth) / dimension) if fourth > 0 else 0.0


def net_drift_ratio(gram: np.ndarray) -> float:
    """Return ``|w_T − w_0|² / Σ|w_{t+1} − w_t|²``: 1 on average for a random walk, T−1 for a line.

    Below 1 the path turns back on itself (noise around one place); 0 where nothing moved.

    Examples
    --------
    >>> net_drift_ratio(displacement_gram(np.tri(11)))
    1.0
    """
    gram = check_gram(gram)
    travelled = float(np.trace(increments_gram(gram)))
    return float(gram[-1, -1]) / travelled if travelled > 0 else 0.0


def early_energy(gram: np.ndarray, early: float = 0.3, components: int = 4) -> float:
    """Return the share of the later displacement that lies inside the early components.

    The basis is the first `components` principal components of the first `early` share of the
    snapshots; the displacement is counted from the last of those. Near 1 where the directions of
    the whole run are set early, near 0 for a random walk; `early_energy_null` gives the same for
    directions in random order.

    Parameters
    ----------
    gram
        Displacement Gram matrix (T, T).
    early
        Share of the snapshots that count as early, in (0, 1); at least two are taken.
    components
        Dimension of the early subspace, at least 1.

    Returns
    -------
    float
        In [0, 1]; 0 where nothing moves later.

    Raises
    ------
    ArgumentError
        If no snapshot is left for one of the two parts.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.ones(50)
    >>> round(early_energy(displacement_gram(line)), 9)
    1.0
    """
    return float(early_energies(check_gram(gram)[None], early, components)[0])


def early_energies(grams: np.ndarray, early: float, components: int) -> np.ndarray:
    """Return `early_energy` of each of a stack of Gram matrices (n, T, T), shape (n,).

    Examples
    --------
    >>> early_energies(displacement_gram(np.tri(11))[None], 0.5, 2)
    array([0.])
    """
    count = grams.shape[-1]
    end = max(2, round(early * count))
    if not 0 < early < 1 or end >= count:
        raise ArgumentError(
            f"early must be a share of the {count} snapshots that leaves at least two early and "
            f"one later; got {early}."
        )
    components = check_whole("components", components)
    values, vectors = np.linalg.eigh(centred(grams[:, :end, :end]))
    # v'Xy for a later displacement y from the last early snapshot; v sums to zero over the early
    # snapshots, so their mean drops out of Xy (exactly so, or it swamps small components).
    vectors = vectors - vectors.mean(axis=-2, keepdims=True)
    later = grams[:, :end, end:] - grams[:, :end, end - 1, None]
    inside = (np.swapaxes(vectors, -1, -2) @ later) ** 2
    is_large = values > ROUNDING * np.maximum(values[:, -1:], np.finfo(float).tiny)
    is_large[:, : max(0, end - components)] = False
    share = (
        np.where(is_large, 1.0 / np.where(is_large, values, 1.0), 0.0)[:, :, None]
        * inside
    )
    ends = np.diagonal(grams, axis1=-2, axis2=-1)[:, end:]
    whole = ends - 2 * grams[:, end - 1, end:] + grams[:, end - 1, end - 1, None]
    total = whole.sum(axis=-1)
    return np.where(
        total > 0, share.sum(axis=(-2, -1)) / np.where(total > 0, total, 1.0), 0.0
    )
