"""How many directions a matrix uses: four counts that the field calls some kind of rank.

All are functions of the singular values σ of the matrix as it is given; centre it first where the
spread around the mean is meant. All are unchanged by scaling, rotation and transposition.

And the one rule by which components are counted.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, matrix, namespace, numpy_matrix, to_numpy
from ..errors import ArgumentError, NonFiniteError

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
    energy = np.cumsum(values, axis=-1)
    short = (energy < (variance - ROUNDING) * total).sum(axis=-1)
    return np.where(total[..., 0] > 0, short + 1, 0)


def effective_rank(A: Array | None = None, *, spectrum: Array | None = None) -> float:
    """Return exp(−Σ p log p) with p = σ / Σσ: the entropy rank of Roy and Vetterli.

    (The Execution Manifolds paper calls another number so: that one is `variance_rank` here.)

    Parameters
    ----------
    A
        Matrix (n, m).
    spectrum
        Its singular values, in any order, instead of `A`.

    Returns
    -------
    float
        1 to min(n, m); 0 for a zero matrix.

    Raises
    ------
    ArgumentError, NonFiniteError
        If neither or both are given, the shape is wrong, or a number is not finite.

    References
    ----------
    O. Roy, M. Vetterli, The effective rank: a measure of effective dimensionality, EUSIPCO 2007.

    Examples
    --------
    >>> round(effective_rank(np.eye(5)), 9)
    5.0
    """
    values = _singular_values(A, spectrum)
    share = values / values.sum() if values.any() else values
    share = share[share > 0]
    return float(np.exp(-np.sum(share * np.log(share)))) if len(share) else 0.0


def stable_rank(A: Array | None = None, *, spectrum: Array | None = None) -> float:
    """Return ‖A‖²_F / ‖A‖²_2 = Σσ² / max σ² of a matrix (n, m), or of its singular values.

    1 to rank(A); 0 for a zero matrix. M. Rudelson, R. Vershynin, J. ACM 54(4), 2007. Arguments and
    errors as in `effective_rank`.

    Examples
    --------
    >>> stable_rank(spectrum=[2.0, 1.0, 1.0])
    1.5
    """
    return float(np.sum(_singular_values(A, spectrum) ** 2))


def participation_ratio(
    A: Array | None = None, *, spectrum: Array | None = None
) -> float:
    """Return (Σσ²)² / Σσ⁴ of a matrix (n, m), or of its singular values.

    1 to rank(A); 0 for a zero matrix. With centred rows σ² are the variances of the principal
    components (P. Gao et al., bioRxiv 214262, 2017). Arguments and errors as in `effective_rank`.

    Examples
    --------
    >>> participation_ratio(spectrum=[1.0, 1.0, 1.0, 0.0])
    3.0
    """
    energy = _singular_values(A, spectrum) ** 2
    return float(energy.sum() ** 2 / np.sum(energy**2)) if energy.any() else 0.0


def singular_value_rank(
    A: Array | None = None, variance: float = 0.9, *, spectrum: Array | None = None
) -> int:
    """Return how many singular directions of a matrix (n, m) hold `variance` of Σσ².

    Of W_T − W_0 it is the rank of what was learned; a square Gaussian matrix of 128
    rows has 65. 0 for a zero matrix. Arguments and errors as in `effective_rank`.

    Examples
    --------
    >>> singular_value_rank(spectrum=[3.0, 0.9, 0.1])
    1
    >>> singular_value_rank(np.eye(10))
    9
    """
    return int(components_holding(variance, _singular_values(A, spectrum) ** 2))


def _singular_values(A: Array | None, spectrum: Array | None) -> np.ndarray:
    """Return the singular values in float64, largest first, divided by the largest."""
    if (A is None) == (spectrum is None):
        raise ArgumentError(
            "give either a matrix or spectrum=, its singular values; not both."
        )
    if spectrum is None:
        A = matrix("A", A)
        xp = namespace(A)
        A = xp.astype(A, xp.float64)
        scale = xp.max(xp.abs(A))  # squares of 1e-200 and 1e200 would leave the range
        values = to_numpy(xp.linalg.svdvals(A / scale if scale > 0 else A))
    else:
        values = np.sort(numpy_matrix("spectrum", spectrum, ndim=1))[::-1]
        if values[-1] < 0:
            raise ArgumentError(
                f"spectrum must hold no negative number; its smallest is {values[-1]}."
            )
    if not np.isfinite(values).all():
        raise NonFiniteError("the singular values of A are not finite.")
    return values / values[0] if values[0] > 0 else values
