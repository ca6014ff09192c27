"""Eigenvalues of stacks of Gram matrices, and the one rule by which components are counted."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError

# A share of the variance that rounding alone can add or take away.
ROUNDING = 1e-12


def centred(gram: np.ndarray) -> np.ndarray:
    """Return the Gram matrices (..., T, T) of the same points with their mean subtracted.

    Examples
    --------
    >>> centred(np.array([[0.0, 0.0], [0.0, 4.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    rows = gram - gram.mean(axis=-2, keepdims=True)
    return rows - rows.mean(axis=-1, keepdims=True)


def descending_eigenvalues(gram: np.ndarray) -> np.ndarray:
    """Return the eigenvalues (..., T) of symmetric matrices (..., T, T), largest first, none < 0.

    Examples
    --------
    >>> descending_eigenvalues(np.diag([1.0, 3.0]))
    array([3., 1.])
    """
    return np.maximum(np.linalg.eigvalsh(gram)[..., ::-1], 0.0)


def components_holding(variance: float, values: np.ndarray) -> np.ndarray:
    """Return how many of the descending `values` (..., T) hold the share `variance` of their sum.

    Nothing to hold (all values zero) takes 0 components.

    Raises
    ------
    ArgumentError
        If `variance` is not in (0, 1].

    Examples
    --------
    >>> int(components_holding(0.9, np.array([8.0, 1.5, 0.5])))
    2
    """
    if not 0 < variance <= 1:
        raise ArgumentError(f"variance must lie in (0, 1]; got {variance}.")
    total = values.sum(axis=-1, keepdims=True)
    held = np.cumsum(values, axis=-1)
    short = (held < (variance - ROUNDING) * total).sum(axis=-1)
    return np.where(total[..., 0] > 0, short + 1, 0)
