"""What brings one dictionary nearest to another: a signed permutation, or any linear map."""

from __future__ import annotations

import numpy as np
from array_api_compat import is_torch_array

from ..arrays import Array, namespace
from .matching import assignments, permutations
from .pair import Pair, give_stack, pair_of


def matched(W: Array, V: Array) -> Array:
    """Return V (..., m, r) with its columns permuted and signed to lie nearest to those of W.

    Examples
    --------
    >>> W = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> bool((matched(W, -W[:, ::-1]) == W).all())
    True
    """
    pair, argument = pair_of(W, V)
    return give_stack(pair.second.stack @ signed_permutation_of(pair), argument)


def least_squares(W: Array, V: Array) -> Array:
    """Return the T (..., r, r) of smallest norm for which V T is nearest to W, both (..., m, r).

    Examples
    --------
    >>> least_squares(np.eye(2), 2 * np.eye(2)).diagonal()
    array([0.5, 0.5])
    """
    pair, argument = pair_of(W, V)
    return give_stack(least_squares_of(pair), argument)


def signed_permutation_of(pair: Pair) -> Array:
    """Return the T that permutes and flips the second one's columns."""
    permutation = permutations(assignments(pair.xp.abs(pair.inner)), pair.inner)
    return permutation @ diagonal(
        signs(pair.first.stack, pair.second.stack @ permutation)
    )


def least_squares_of(pair: Pair) -> Array:
    """Return the T of smallest norm for which the second one times T is nearest to the first."""
    xp = pair.xp
    left, values, right = pair.second.svd
    is_large = pair.second.ranked(None)
    inverse = xp.where(
        is_large, 1.0 / xp.where(is_large, values, xp.ones_like(values)), 0.0
    )
    return right.mT @ (inverse[..., None] * (left.mT @ pair.first.stack))


def signs(first: Array, second: Array) -> Array:
    """Return -1 (..., r) for columns that point away from each other, else 1."""
    xp = namespace(first, second)
    inner = xp.sum(first * second, axis=-2)
    return xp.where(inner < 0, -xp.ones_like(inner), xp.ones_like(inner))


def diagonal(values: Array) -> Array:
    """Diagonal matrices (k, r, r) of `values` (k, r)."""
    xp = namespace(values)
    size = values.shape[-1]
    if is_torch_array(values):
        return values[..., None] * xp.eye(
            size, dtype=values.dtype, device=values.device
        )
    return values[..., None] * np.eye(size)
