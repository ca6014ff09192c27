"""One-to-one matching of columns: the assignment problem on a stack of score matrices."""

from __future__ import annotations

import numpy as np
from array_api_compat import is_torch_array

from ..arrays import Array, namespace, to_numpy


def assignments(scores: Array) -> np.ndarray:
    """Columns (k, r) that give the rows of every score matrix (k, r, r) the largest sum.

    A score of minus infinity forbids a match.

    Examples
    --------
    >>> assignments(np.array([[[1.0, 5.0], [2.0, 3.0]]]))
    array([[1, 0]])
    """
    from scipy.optimize import linear_sum_assignment  # takes a while to import

    return np.stack(
        [linear_sum_assignment(s, maximize=True)[1] for s in to_numpy(scores)]
    )


def picked(scores: Array, columns: np.ndarray) -> Array:
    """Entry ``chosen[k, j]`` of row j of every score matrix, (k, r).

    Examples
    --------
    >>> picked(np.array([[[1.0, 5.0], [2.0, 3.0]]]), np.array([[1, 0]]))
    array([[5., 2.]])
    """
    xp = namespace(scores)
    index = xp.asarray(columns, device=scores.device)
    return xp.take_along_axis(scores, index[..., None], axis=-1)[..., 0]


def permutations(columns: np.ndarray, like: Array) -> Array:
    """Matrices P (k, r, r) such that column j of ``V @ P`` is column ``chosen[j]`` of V.

    Examples
    --------
    >>> permutations(np.array([[1, 0]]), np.ones(1))
    array([[[0., 1.],
            [1., 0.]]])
    """
    stack = np.swapaxes(np.eye(columns.shape[-1])[columns], -1, -2)
    if is_torch_array(like):
        return namespace(like).asarray(stack, dtype=like.dtype, device=like.device)
    return stack
