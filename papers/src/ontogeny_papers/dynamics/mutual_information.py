"""Mutual information of two short series, from distances to nearest neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from ontogeny.arrays import check_finite
from ontogeny.errors import ArgumentError

CHUNK = 2**22  # numbers held at a time


def mutual_information(
    x: ArrayLike,
    y: ArrayLike,
    neighbours: int = 3,
    n_shuffles: int = 50,
    random_state: int = 0,
) -> np.ndarray:
    """Return the mutual information of x and y in nats, minus what shuffled pairs give.

    The estimator of Kraskov, Stögbauer and Grassberger (their first) has little bias for
    independent pairs; the mean over random pairings of the same values takes away what is left.
    So the result may be slightly negative. Values are pairs drawn alike: for series with a trend
    the number says how well one value tells the other *at the same step*, trend included.

    Parameters
    ----------
    x
        (T,): one series.
    y
        (..., T): series that are each compared with x.
    neighbours
        Number k of neighbours, less than T.
    n_shuffles
        Random pairings; 0 gives the estimate uncorrected.
    random_state
        Seed of the pairings.

    Returns
    -------
    numpy.ndarray
        (...,); 0 where a series is constant.

    Raises
    ------
    ArgumentError
        If lengths differ or `neighbours` is out of range.
    NonFiniteError
        If a value is NaN or infinite.

    References
    ----------
    A. Kraskov, H. Stögbauer, P. Grassberger, Phys. Rev. E 69, 066138, 2004, eq. 8.

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 300))
    >>> y = 0.8 * x + 0.6 * e  # −log(1 − 0.8²) / 2 = 0.51
    >>> information, none = mutual_information(x, np.stack([y, e]))
    >>> bool(0.4 < information < 0.65), bool(abs(none) < 0.1)
    (True, True)
    """
    first = np.asarray(x, dtype=float)
    second = np.asarray(y, dtype=float)
    if first.ndim != 1 or not second.ndim or second.shape[-1] != len(first):
        raise ArgumentError(
            f"x must be (T,) and y (..., T); got shapes {first.shape} and {second.shape}."
        )
    if not 0 < neighbours < len(first) or n_shuffles < 0:
        raise ArgumentError(
            f"neighbours must lie between 1 and {len(first) - 1} and n_shuffles not be negative; "
            f"got {neighbours} and {n_shuffles}."
        )
    check_finite("x", first)
    check_finite("y", second)
    rows = _scaled(second.reshape(-1, len(first)))
    first = _scaled(first[None])[0]
    information = _kraskov(first, rows, neighbours)
    rng = np.random.default_rng(random_state)
    if n_shuffles:
        orders = rng.permuted(np.tile(np.arange(len(first)), (n_shuffles, 1)), axis=1)
        chance = [_kraskov(first, row[orders], neighbours).mean() for row in rows]
        information = information - np.array(chance)
    return np.where(np.ptp(rows, axis=1) > 0, information, 0.0).reshape(
        second.shape[:-1]
    )


def _scaled(rows: np.ndarray) -> np.ndarray:
    """Return rows with unit spread: the estimator compares distances along both axes."""
    spread = rows.std(axis=1, keepdims=True)
    return (rows - rows.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)


def _kraskov(x: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """Return ψ(k) + ψ(T) − ⟨ψ(n_x + 1) + ψ(n_y + 1)⟩ for each of rows (n, T)."""
    count = len(x)
    size = max(1, CHUNK // count**2)
    apart_x = np.abs(x[:, None] - x)
    np.fill_diagonal(apart_x, np.inf)  # no point is its own neighbour
    result = np.empty(len(rows))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        apart_y = np.abs(part[:, :, None] - part[:, None, :])
        apart_y[:, np.arange(count), np.arange(count)] = np.inf
        reach = np.partition(np.maximum(apart_x, apart_y), k - 1, axis=2)[
            ..., k - 1 : k
        ]
        near_x = (apart_x < reach).sum(axis=2)
        near_y = (apart_y < reach).sum(axis=2)
        mean = (digamma(near_x + 1) + digamma(near_y + 1)).mean(axis=1)
        result[start : start + size] = digamma(k) + digamma(count) - mean
    return result
