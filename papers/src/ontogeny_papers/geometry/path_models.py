"""Nulls of a path with a drift: the same mean cosines of increments, or a line with noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import toeplitz

from ontogeny.arrays import Array
from ontogeny.errors import ArgumentError

from .nulls import (
    NullDistribution,
    drawn_null,
    gaussian_factor,
    one_path,
    path_grams,
    step_lengths,
)
from .snapshots import check_gram, increments_gram


def increment_cosines(gram: np.ndarray) -> np.ndarray:
    """Return the mean cosine between increments that lie 0, 1, 2, ... steps apart.

    Parameters
    ----------
    gram
        Displacement Gram matrix (T, T).

    Returns
    -------
    numpy.ndarray
        (T − 1,), the first is 1; increments of length zero are left out, and a lag without any
        pair is 0.

    Examples
    --------
    >>> line = np.linspace(0, 1, 5)[:, None] * np.ones(3)
    >>> increment_cosines(line @ line.T)
    array([1., 1., 1., 1.])
    """
    steps = increments_gram(check_gram(gram))
    lengths = np.sqrt(np.maximum(np.diagonal(steps), 0.0))
    moves = lengths > 0
    cosines = steps / np.where(
        moves[:, None] & moves, np.outer(lengths, lengths), np.inf
    )
    pairs = (moves[:, None] & moves).astype(float)
    result = [
        np.trace(cosines, lag) / max(np.trace(pairs, lag), 1.0)
        for lag in range(len(steps))
    ]
    return np.array([1.0, *result[1:]])


def lag_cosine_null(
    snapshots: Array | None = None,
    n_draws: int = 100,
    random_state: int = 0,
    *,
    gram: np.ndarray | None = None,
    dimension: int | None = None,
    ends: Sequence[int] | None = None,
    variance: float = 0.9,
) -> NullDistribution:
    """Return `variance_rank` of Gaussian paths with the same mean increment cosine per lag.

    Step lengths are kept; directions are Gaussian with a correlation that depends on the lag alone,
    as `increment_cosines` measures it (its nearest positive semi-definite form). What this null
    explains is drift and persistence of the same kind all along the run. Arguments and errors as in
    `random_walk_null`.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.ones(50)
    >>> print(lag_cosine_null(line, n_draws=20).mean)
    1.0
    """
    gram, dimension = one_path(snapshots, gram, dimension)
    lengths = step_lengths(gram)
    rng = np.random.default_rng(random_state)
    values, vectors = np.linalg.eigh(toeplitz(increment_cosines(gram)))
    mix = vectors * np.sqrt(np.maximum(values, 0.0))

    def draw(size: int) -> np.ndarray:
        return path_grams(
            mix @ gaussian_factor(len(lengths), dimension, size, rng), lengths
        )

    return drawn_null(gram, n_draws, ends, variance, draw)


def line_noise_null(
    snapshots: Array | None = None,
    n_draws: int = 100,
    random_state: int = 0,
    *,
    gram: np.ndarray | None = None,
    dimension: int | None = None,
    ends: Sequence[int] | None = None,
    variance: float = 0.9,
) -> NullDistribution:
    """Return `variance_rank` of a straight line with independent noise on every snapshot.

    Speed and noise are those that give the path's own mean squared step and net displacement; no
    line is left where the net displacement is below what noise alone gives. Arguments and errors as
    in `random_walk_null`.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.ones(50)
    >>> print(line_noise_null(line, n_draws=20).mean)
    1.0
    """
    gram, dimension = one_path(snapshots, gram, dimension)
    count = len(gram)
    rng = np.random.default_rng(random_state)
    speed, noise = _line(gram)

    def draw(size: int) -> np.ndarray:
        factor = gaussian_factor(count + 1, dimension, size, rng)
        direction = factor[:, :1] / np.linalg.norm(
            factor[:, :1], axis=-1, keepdims=True
        )
        points = speed * np.arange(count)[:, None] * direction
        points = points + factor[:, 1:] * np.sqrt(noise / dimension)
        points = points - points[:, :1]
        return np.asarray(points @ np.swapaxes(points, 1, 2))

    return drawn_null(gram, n_draws, ends, variance, draw)


def _line(gram: np.ndarray) -> tuple[float, float]:
    """Return the speed c and the noise's squared norm s: c² + 2s per step, (cT)² + 2s in all."""
    steps = len(gram) - 1
    per_step = float(np.trace(increments_gram(gram))) / steps
    net = float(gram[-1, -1])
    if steps < 2:
        raise ArgumentError("a line with noise needs at least 3 snapshots.")
    squared = min(max((net - per_step) / (steps**2 - 1), 0.0), per_step)
    return float(np.sqrt(squared)), (per_step - squared) / 2
