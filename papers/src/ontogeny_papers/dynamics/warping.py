"""Dynamic time warping."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.arrays import check_finite
from ontogeny.errors import ArgumentError


def dtw(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Return the dynamic time warping distance, the least sum of ``|x_i − y_j|`` over warpings.

    Parameters
    ----------
    x, y
        Series (..., n) and (..., m) whose leading dimensions broadcast. Standardise them first
        where only their course is to be compared.

    Returns
    -------
    numpy.ndarray
        (...,); 0 for equal series, lower for more alike ones.

    Raises
    ------
    ArgumentError
        If a series is empty.
    NonFiniteError
        If a value is NaN or infinite.

    References
    ----------
    H. Sakoe, S. Chiba, IEEE Trans. ASSP 26, 1978; Bernas 2025, footnote 37.

    Examples
    --------
    >>> float(dtw([0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0]))
    0.0
    """
    first, second = (np.asarray(v, dtype=float) for v in (x, y))
    if not (first.ndim and second.ndim and first.size and second.size):
        raise ArgumentError(
            f"x and y must be series; got shapes {first.shape}, {second.shape}."
        )
    check_finite("x", first)
    check_finite("y", second)
    n = first.shape[-1]
    m = second.shape[-1]
    cost = np.abs(first[..., :, None] - second[..., None, :])
    total = np.full((*cost.shape[:-2], n + 1, m + 1), np.inf)
    total[..., 0, 0] = 0.0
    # Cells of one diagonal do not depend on each other.
    for diagonal in range(n + m - 1):
        i = np.arange(max(0, diagonal - m + 1), min(n - 1, diagonal) + 1)
        j = diagonal - i
        before = np.minimum(total[..., i, j + 1], total[..., i + 1, j])
        total[..., i + 1, j + 1] = cost[..., i, j] + np.minimum(
            before, total[..., i, j]
        )
    return np.asarray(total[..., n, m])
