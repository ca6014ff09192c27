"""Procrustes: the distance that is left after the best rotation of the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Array, namespace
from .pair import Pair, measured

__all__ = ["best_rotation", "nearest_rotation_distance", "procrustes"]

# Below this share of the summed squares, total - 2 * nuclear norm has lost three digits or more.
_NEAR = 1e-3


def procrustes(W: Array, V: Array) -> Any:
    """Procrustes distance: min over orthogonal Q of ||W - V Q||_F, without centring or scaling.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch.

    Returns
    -------
    float, or an array of shape (...)
        In the units of W; zero when V is W with its columns rotated, permuted or flipped.

    Raises
    ------
    ArgumentError
        If the shapes differ. ``NonFiniteError`` if an entry is NaN or infinite.

    Notes
    -----
    Bernas (2025), Definition 44; Schönemann (1966). A pseudo-metric: zero between W and W Q. Near
    zero the residual W - V Q is formed, because ||W||^2 + ||V||^2 - 2 ||V^T W||_* cancels.

    Examples
    --------
    >>> procrustes([[1.0, 0.0], [0.0, 2.0]], [[0.0, -1.0], [2.0, 0.0]])
    0.0
    """
    return measured(procrustes_of, W, V)


def procrustes_of(pair: Pair) -> Array:
    """Procrustes distance of every member of a pair of stacks."""

    def by_vectors(near: Array) -> Array:
        # W and V turned into their own singular bases: there V^T W is graded like the singular
        # values, and the polar factor is right also between directions of tiny length.
        part = pair.take(near)
        return _residual(*(f.svd[0] * f.svd[1][..., None, :] for f in (part.first, part.second)))

    return _nearest(pair.first.stack, pair.second.stack, by_vectors)


def nearest_rotation_distance(F: Array, G: Array) -> Array:
    """Min over orthogonal Q of ||F - G Q||_F for stacks (k, m, r), exact also near zero."""
    return _nearest(F, G, lambda near: _residual(F[near], G[near]))


def best_rotation(F: Array, G: Array) -> Array:
    """Orthogonal Q (k, r, r) that minimises ||F - G Q||_F: the polar factor of G^T F."""
    left, _, right = namespace(F, G).linalg.svd(G.mT @ F, full_matrices=False)
    return left @ right


def _nearest(F: Array, G: Array, residual: Callable[[Array], Array]) -> Array:
    """||F||^2 + ||G||^2 - 2 ||G^T F||_* where that keeps its digits, else `residual` (squared)."""
    xp = namespace(F, G)
    total = _squares(F) + _squares(G)
    squared = total - 2.0 * xp.sum(xp.linalg.svdvals(G.mT @ F), axis=-1)
    near = squared < _NEAR * total
    if bool(xp.any(near)):
        squared[near] = residual(near)
    return xp.sqrt(squared)


def _residual(F: Array, G: Array) -> Array:
    return _squares(F - G @ best_rotation(F, G))


def _squares(stack: Array) -> Array:
    return namespace(stack).sum(stack * stack, axis=(-2, -1))
