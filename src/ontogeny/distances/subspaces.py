"""Grassmann distance: between the column spaces of two dictionaries."""

from __future__ import annotations

from typing import Any

from ..arrays import Array
from ..errors import ArgumentError
from .pair import Pair, measured, squares


def grassmann(W: Array, V: Array, rank_tolerance: float | None = None) -> Any:
    """Grassmann distance: the norm of the sines of the principal angles between column spaces.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch; their r may differ.
    rank_tolerance
        Singular values below this share of the largest one span nothing. By default
        ``max(m, r)`` times the precision of the argument's dtype (float32 for half precision).

    Returns
    -------
    float, or an array of shape (...)
        Without unit; between 0 and sqrt(r), for different r the root of their mean.

    Raises
    ------
    ArgumentError
        If m or the leading dimensions differ or the tolerance is not between 0 and 1.

    Notes
    -----
    Bernas (2025), Definition 47. Computed as ||P_W - P_V||_F / sqrt(2) with P the orthogonal
    projections, which is the same where the ranks agree and stays defined where they do not (a
    column space of rank a inside one of rank b is sqrt((b - a) / 2) away). The sines come from
    what one space leaves of the other: the arc cosine of a cosine near 1 has eight digits only.
    Invariant when either dictionary is multiplied by any invertible matrix from the right.

    Examples
    --------
    >>> grassmann([[1.0], [0.0]], [[1.0], [1.0]])
    0.7071067811865475
    """
    return measured(grassmann_of, W, V, any_r=True, rank_tolerance=rank_tolerance)


def grassmann_of(pair: Pair, rank_tolerance: float | None = None) -> Array:
    """Grassmann distance of every member of a pair of stacks."""
    if rank_tolerance is not None and not 0 <= rank_tolerance < 1:
        raise ArgumentError(f"rank_tolerance must be in [0, 1); got {rank_tolerance}.")
    xp = pair.xp
    kept_first = pair.first.ranked(rank_tolerance)
    kept_second = pair.second.ranked(rank_tolerance)
    if bool(xp.all(kept_first)) and bool(xp.all(kept_second)):
        return xp.sqrt(squares(pair.triangle))
    first = xp.where(kept_first[..., None, :], pair.first.svd[0], 0.0)
    second = xp.where(kept_second[..., None, :], pair.second.svd[0], 0.0)
    outside = squares(second - first @ (first.mT @ second))
    ranks = [xp.sum(xp.astype(k, outside.dtype), axis=-1) for k in (kept_first, kept_second)]
    # outside + (rank W - rank V) is what V's space leaves of W's: the two halves of the projection
    # distance. It cannot be negative; rounding of an exact 0 can.
    return xp.sqrt(xp.clip(outside + (ranks[0] - ranks[1]) / 2.0, 0.0, None))
