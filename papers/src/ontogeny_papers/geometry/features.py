"""How features share the dimensions of a space that is too small for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.arrays import numpy_matrix


def feature_dimensionality(W: ArrayLike) -> np.ndarray:
    """Return the share of a dimension that every feature has for itself.

    Parameters
    ----------
    W
        Directions of the features as columns w_1, ..., w_n of (m, n).

    Returns
    -------
    numpy.ndarray
        D_i = ‖w_i‖² / Σ_j (ŵ_i · w_j)², (n,) float64 from 0 to 1: 1 for a direction of its own,
        1/2 for two opposite ones, 2/5 for five in a regular pentagon. 0 for a column of zeros.

    Raises
    ------
    ArgumentError
        If `W` is no matrix.
    NonFiniteError
        If a value is NaN or infinite.

    Notes
    -----
    Elhage et al. 2022, "Toy models of superposition", section "Feature dimensionality".

    Examples
    --------
    >>> feature_dimensionality([[1.0, 0.0, 0.0], [0.0, 2.0, -2.0]]).tolist()
    [1.0, 0.5, 0.5]
    """
    directions = numpy_matrix("W", W)
    largest = np.abs(directions).max()
    directions = directions / (largest or 1.0)  # so that no square underflows
    squares = np.square(directions).sum(axis=0)
    shared = np.square(directions.T @ directions).sum(axis=1)
    return np.divide(squares**2, shared, out=np.zeros_like(squares), where=shared > 0)
