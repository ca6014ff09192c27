"""Angles between the column spaces of two matrices."""

from __future__ import annotations

from ..arrays import Array, matrix, namespace
from ..errors import ArgumentError

__all__ = ["principal_angles"]


def principal_angles(W: Array, V: Array) -> Array:
    """Return the principal angles between the column spaces of `W` and `V`, smallest first.

    Small angles come from their sines and large ones from their cosines (A. Knyazev,
    M. Argentati, SIAM J. Sci. Comput. 23(6), 2002), so that 1e-9 rad is 1e-9 rad and not 0.

    Parameters
    ----------
    W, V
        Matrices (m, r) and (m, s) of one kind, float32 or float64; columns may be dependent.

    Returns
    -------
    Array
        Angles in radians, 0 to π/2, min(rank W, rank V) of them; of the kind and dtype that came.

    Raises
    ------
    ArgumentError
        If they differ in their number of rows, or one of them is zero.
    NonFiniteError
        If one holds NaN or infinity.

    Notes
    -----
    What chance gives: for independent, uniformly random subspaces of dimensions r ≤ s in R^m, the
    mean of the squared cosines is s/m; for r = 1 the squared cosine is Beta(s/2, (m−s)/2).

    (`scipy.linalg.subspace_angles` 1.17 mixes the two formulas up where small and large angles
    occur together, and then gives 1e-8 for 0.)

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> V = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> np.round(np.degrees(principal_angles(W, V)), 6)
    array([ 0., 45.])
    """
    W, V = matrix("W", W), matrix("V", V)
    xp = namespace(W, V)
    if W.shape[0] != V.shape[0]:
        raise ArgumentError(
            f"W and V must have equally many rows; their shapes are {tuple(W.shape)} and "
            f"{tuple(V.shape)}."
        )
    dtype = xp.result_type(W, V)
    Q, R = _basis("W", W), _basis("V", V)
    if Q.shape[1] < R.shape[1]:
        Q, R = R, Q
    cosines = xp.linalg.svdvals(Q.T @ R)
    sines = xp.flip(xp.linalg.svdvals(R - Q @ (Q.T @ R)))
    small = cosines**2 >= 0.5
    angles = xp.where(
        small,
        xp.asin(xp.clip(sines, 0.0, 1.0)),
        xp.acos(xp.clip(cosines, 0.0, 1.0)),
    )
    return xp.astype(angles, dtype)


def _basis(name: str, W: Array) -> Array:
    """Return an orthonormal float64 basis of the columns; their rank is that at W's precision."""
    xp = namespace(W)
    size = xp.max(xp.abs(W))
    if size == 0:
        raise ArgumentError(f"{name} is zero, so its columns span no subspace.")
    tolerance = xp.finfo(W.dtype).eps * max(W.shape)
    left, values, _ = xp.linalg.svd(xp.astype(W / size, xp.float64), full_matrices=False)
    return left[:, : int(xp.sum(values > tolerance * values[0]))]
