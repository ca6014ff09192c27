"""Procrustes: the distance that is left after the best rotation of the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Array, namespace
from .pair import Pair, measured, squares

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
    W = pair.first
    V = pair.second

    def nuclear_norm(far: Array) -> Array:
        return _nuclear_norm(pair.inner[far])

    def residual(near: Array) -> Array:
        # Both turned into their own singular bases: there V^T W is graded like the singular
        # values, and the polar factor is right also between directions of tiny length.
        return _residual(
            W.svd[1][near], pair.coordinates[near] * V.svd[1][near][..., None, :]
        )

    return _nearest(pair, W.squares + V.squares, nuclear_norm, residual)


def nearest_to_diagonal(pair: Pair, total: Array, f: Array, G: Array) -> Array:
    """Min over orthogonal Q of ||diag(f) - G Q||_F, with total = ||f||^2 + ||G||_F^2.

    It must not exceed ||W - V||_F, as no distance does that the `pair` calls near.
    """
    return _nearest(
        pair,
        total,
        lambda far: _nuclear_norm(G[far] * f[far][..., None, :]),
        lambda near: _residual(f[near], G[near]),
    )


def best_rotation(product: Array) -> Array:
    """Orthogonal Q (k, r, r) that minimises ||F - G Q||_F, the polar factor of G^T F."""
    left, _, right = namespace(product).linalg.svd(product, full_matrices=False)
    return left @ right


def _nearest(
    pair: Pair,
    total: Array,
    nuclear_norm: Callable[[Array], Array],
    residual: Callable[[Array], Array],
) -> Array:
    """Root of total - 2 ||G^T F||_* where that keeps its digits, else of the squared `residual`.

    Both are told which members to compute. Where W - V itself is small the first is not tried.
    """
    xp = pair.xp
    squared = xp.zeros_like(total)
    near = pair.difference_squares < _NEAR * total
    if not bool(xp.all(near)):
        squared[~near] = total[~near] - 2.0 * nuclear_norm(~near)
        near = squared < _NEAR * total
    if bool(xp.any(near)):
        squared[near] = residual(near)
    return xp.sqrt(squared)


def _nuclear_norm(stack: Array) -> Array:
    xp = namespace(stack)
    return xp.sum(xp.linalg.svdvals(stack), axis=-1)


def _residual(f: Array, G: Array) -> Array:
    """Min over orthogonal Q of ||F - G Q||_F^2 with f the diagonal of F."""
    xp = namespace(f, G)
    count = f.shape[-1]
    product = G[..., :count, :].mT * f[..., None, :]
    eye = xp.eye(G.shape[-2], count, dtype=f.dtype, device=f.device)
    return squares(eye * f[..., None, :] - G @ best_rotation(product))
