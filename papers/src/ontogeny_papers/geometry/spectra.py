"""Eigenvalues of stacks of Gram matrices, and the rank that a Gaussian matrix has."""

from __future__ import annotations

import numpy as np

from ontogeny.errors import ArgumentError, check_whole


def descending_eigenvalues(gram: np.ndarray) -> np.ndarray:
    """Return the eigenvalues (..., T) of symmetric matrices (..., T, T), largest first, none < 0.

    Examples
    --------
    >>> descending_eigenvalues(np.diag([1.0, 3.0]))
    array([3., 1.])
    """
    return np.maximum(np.linalg.eigvalsh(gram)[..., ::-1], 0.0)


def gaussian_matrix_rank(rows: int, columns: int, variance: float = 0.9) -> float:
    """Return the expected `singular_value_rank` of a large Gaussian matrix (rows, columns).

    From the law of its singular values (V. Marchenko, L. Pastur, 1967): the null of "what was
    learned has low rank".

    Raises
    ------
    ArgumentError
        If a number is out of range.

    Examples
    --------
    >>> round(gaussian_matrix_rank(128, 128))
    65
    """
    rows = check_whole("rows", rows)
    columns = check_whole("columns", columns)
    if not 0 < variance <= 1:
        raise ArgumentError(f"variance must lie in (0, 1]; got {variance}.")
    small = min(rows, columns)
    ratio = min(rows, columns) / max(rows, columns)
    low = (1 - np.sqrt(ratio)) ** 2
    high = (1 + np.sqrt(ratio)) ** 2
    # s = low + (high − low) sin²(a) takes the square-root ends out of the integral
    angle = (np.arange(20_000) + 0.5) / 20_000 * (np.pi / 2)
    s = low + (high - low) * np.sin(angle) ** 2
    weight = (np.sin(angle) * np.cos(angle)) ** 2 / s
    energy = np.cumsum((weight * s)[::-1]) / np.sum(weight * s)
    rank = int(np.searchsorted(energy, variance - 1e-12)) + 1
    return float(small * weight[::-1][:rank].sum() / weight.sum())
