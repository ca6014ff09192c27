"""How much of the rows of a matrix lies at each frequency of their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.arrays import check_finite
from ontogeny.errors import ArgumentError


def row_frequencies(E: ArrayLike) -> np.ndarray:
    """Return the share of the variance of rows in a cyclic order at every frequency.

    Parameters
    ----------
    E
        Rows e_0, ..., e_{n-1} (n, d); e_0 follows e_{n-1}.

    Returns
    -------
    numpy.ndarray
        (n // 2,) float64, of the frequencies 1 to n // 2 in cycles over all rows; it adds up to 1.
        Rows in an order that means nothing have equal shares on average.

    Raises
    ------
    ArgumentError
        If there are fewer than 4 rows, or all rows are equal.
    NonFiniteError
        If a value is NaN or infinite.

    Notes
    -----
    Parseval's identity for the discrete Fourier transform over the rows; Nanda et al. 2023, sec. 4
    and 5, look at an embedding in this way.

    Examples
    --------
    >>> angle = 2 * np.pi * 3 * np.arange(11) / 11
    >>> row_frequencies(np.stack([np.cos(angle), np.sin(angle)], axis=1)).round(
    ...     6
    ... ).tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    rows = np.asarray(E, dtype=float)
    if rows.ndim != 2 or len(rows) < 4:
        raise ArgumentError(
            f"E must have at least 4 rows and two dimensions; got {rows.shape}."
        )
    check_finite("E", rows)
    apart = rows - rows.mean(axis=0)
    scale = np.abs(apart).max()
    if scale <= np.finfo(np.float64).eps * np.abs(rows).max():
        raise ArgumentError("E must have rows that differ.")
    power = np.square(np.abs(np.fft.rfft(apart / scale, axis=0))).sum(axis=1)[1:]
    power[: (len(rows) - 1) // 2] *= 2  # all but n/2 stand for a negative frequency too
    shares: np.ndarray = power / power.sum()
    return shares
