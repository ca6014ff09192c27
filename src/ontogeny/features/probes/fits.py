"""Linear probes: each half of the texts is told by what the other one taught."""

from __future__ import annotations

import numpy as np

PENALTIES = tuple(
    10.0**power for power in range(-5, 3)
)  # against the largest direction


def control_labels(
    kinds: np.ndarray, labels: np.ndarray, n_draws: int, seed: int
) -> np.ndarray:
    """Return labels (n_draws, n) that are drawn for each word type, as frequent as the true ones.

    References
    ----------
    J. Hewitt and P. Liang, Designing and interpreting probes with control tasks, EMNLP 2019.

    Examples
    --------
    >>> drawn = control_labels(np.array(["a", "b", "a"]), np.array([0, 1, 1]), 4, 0)
    >>> drawn.shape, bool((drawn[:, 0] == drawn[:, 2]).all())
    ((4, 3), True)
    """
    rng = np.random.default_rng([seed, 21])
    types, place = np.unique(kinds, return_inverse=True)
    return np.stack([rng.choice(labels, len(types))[place] for _ in range(n_draws)])


def right(A: np.ndarray, labels: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return whether each row's label is told by a probe of the other half.

    Ridge regressions on the labels' indicators; the penalty of each task is that with the smallest
    error on rows that are left out of the half that it is fitted to.

    Parameters
    ----------
    A
        (n, m) activations.
    labels
        (tasks, n) whole numbers.
    half
        (n,) True for the rows of one half of the texts.

    Returns
    -------
    numpy.ndarray
        (tasks, n) bool.
    """
    told = np.zeros(labels.shape, dtype=bool)
    for train in (half, ~half):
        X = A[train].astype(np.float64)
        mean = X.mean(axis=0)
        scale = X.std(axis=0)
        scale[scale < 1e-6 * max(scale.max(initial=0.0), 1e-30)] = 1.0
        U, s, V = np.linalg.svd((X - mean) / scale, full_matrices=False)
        Z = ((A[~train] - mean) / scale) @ V.T
        for task, of_task in zip(told, labels, strict=True):
            kinds, place = np.unique(of_task[train], return_inverse=True)
            Y = np.eye(len(kinds))[place]
            weights = _fitted(U, s, Y)
            scores = Z @ weights + Y.mean(axis=0)
            task[~train] = kinds[scores.argmax(axis=1)] == of_task[~train]
    return told


def _fitted(U: np.ndarray, s: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return weights on right singular directions, by the penalty with the least left-out error."""
    centred = Y - Y.mean(axis=0)
    along = U.T @ centred
    largest = max(float(s.max(initial=0.0)) ** 2, 1e-30)
    best = (np.inf, np.zeros_like(along))
    for penalty in PENALTIES:
        shrink = s**2 / (s**2 + penalty * largest)
        leverage = (U**2) @ shrink + 1 / len(Y)
        left = (centred - U @ (shrink[:, None] * along)) / np.maximum(
            1 - leverage, 1e-9
        )[:, None]
        error = float((left**2).mean())
        if error < best[0]:
            weights = (s / (s**2 + penalty * largest))[:, None] * along
            best = (error, weights)
    return best[1]


def majority(labels: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return whether each row has the commonest label of the other half (n,)."""
    told = np.zeros(len(labels), dtype=bool)
    for train in (half, ~half):
        kinds, counts = np.unique(labels[train], return_counts=True)
        told[~train] = labels[~train] == kinds[counts.argmax()]
    return told
