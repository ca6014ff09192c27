"""Intrinsic dimension from ratios of distances to the two nearest neighbours."""

from __future__ import annotations

import numpy as np

from ontogeny.errors import check_choice, check_number

METHODS = ("regression", "origin", "facco", "likelihood")
FEWEST = 5  # points with a usable ratio
FLAT = 1e-6  # largest log ratio of distances that rounding alone may leave
# Of the largest coordinate: closer points are one.
ROUNDING = 4 * np.finfo(np.float64).eps


def log_ratios(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log mu of every point (n,), NaN where it has none, and whether it coincides (n,).

    Points that coincide with another are left out before neighbours are looked for: their
    neighbours would have two at one distance, which raises the estimate (by a third where 60 % of
    points are doubled).
    """
    logs = np.full(len(X), np.nan)
    coincides = np.zeros(len(X), dtype=bool)
    if len(X) < 3:
        return logs, coincides
    near = two_nearest(X)
    # Points that differ by less than rounding of the coordinates are the same point.
    coincides = near[:, 0] <= ROUNDING * np.abs(X).max()
    if coincides.any():
        if (~coincides).sum() < 3:
            return logs, coincides
        near = two_nearest(X[~coincides])
    logs[~coincides] = np.log(near[:, 1] / near[:, 0])
    return logs, coincides


def dimension_of_ratios(logs: np.ndarray, method: str, discard: float) -> float:
    """Return the estimate from log mu of the points (n,), NaN where it is undefined.

    It is undefined where fewer than five are known (not NaN), or more than half are 0.
    """
    ratios = usable_logs(logs)
    if len(ratios) < FEWEST or 2 * int((ratios < FLAT).sum()) > len(ratios):
        return np.nan
    return float(estimate(ratios[None], method, discard)[0])


def usable_logs(logs: np.ndarray) -> np.ndarray:
    """Return the log ratios that are known, sorted."""
    return np.sort(logs[~np.isnan(logs)])


def check_estimator(method: str, discard: float) -> None:
    """Refuse a method or a share to discard that `two_nn` does not take."""
    check_choice("method", method, METHODS)
    check_number("discard", discard, 0, 0.5, below=True)


def estimate(logs: np.ndarray, method: str, discard: float) -> np.ndarray:
    """Estimate the dimension of every row of sorted `logs` (k, n)."""
    n = logs.shape[1]
    count = max(FEWEST, int(np.floor(n * (1 - discard)))) if discard else n
    x = logs[:, :count]
    if method == "likelihood":
        # The ratios beyond the kept ones are known to be at least the largest kept one.
        total = x.sum(1) + (n - count) * x[:, -1]
        return count / np.maximum(total, np.finfo(float).tiny)
    if method == "facco":
        x = x[:, : n - 1]  # of the last one, 1 - j/n is 0
    shift = 0.0 if method == "facco" else 0.5
    y = np.log1p(-(np.arange(1, x.shape[1] + 1) - shift) / n)[None]
    if method == "regression":
        x = x - x.mean(1, keepdims=True)
        y = y - y.mean()
    return -(x * y).sum(1) / np.maximum((x * x).sum(1), np.finfo(float).tiny)


# Neighbours kept from the fast pass, whose distances are then taken exactly.
CANDIDATES = 6
CHUNK = 1024


def two_nearest(X: np.ndarray) -> np.ndarray:
    """Return the distances of each row of `X` (n, m) to its two nearest other rows, (n, 2).

    Candidates come from one matrix product; their distances are then norms of differences, since
    ``|x|^2 + |y|^2 - 2 x.y`` loses all digits where points are much nearer to each other than to
    the mean.

    Examples
    --------
    >>> two_nearest(np.array([[0.0], [1.0], [3.0]])).tolist()
    [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0]]
    """
    X = X - X.mean(axis=0)
    n = len(X)
    square = np.einsum("ij,ij->i", X, X)
    keep = min(CANDIDATES, n - 1)
    result = np.empty((n, 2))
    for low in range(0, n, CHUNK):
        rows = np.arange(low, min(low + CHUNK, n))
        near = square[None, :] - 2 * X[rows] @ X.T
        near[np.arange(len(rows)), rows] = np.inf
        candidates = np.argpartition(near, keep - 1, axis=1)[:, :keep]
        # Differences are held for few rows at a time.
        for start in range(0, len(rows), 64):
            part = slice(start, start + 64)
            gaps = X[rows[part], None, :] - X[candidates[part]]
            exact = np.sort(np.sqrt(np.einsum("ikj,ikj->ik", gaps, gaps)), axis=1)
            result[rows[part]] = exact[:, :2]
    return result
