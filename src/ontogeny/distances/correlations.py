"""Correlations: how well the columns of two dictionaries point the same way, from 0 to 1.

The correlation of two columns is the absolute cosine between them, not centred (Definition 49);
a zero column has cosine 0 with everything. Similarities, not distances.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arrays import Array, namespace
from ..errors import ArgumentError, check_choice
from .matching import assignments, picked
from .pair import Factors, Pair, codes_of, cosines, give, pair_of, stacked

CORRELATIONS = ("columnwise", "optimal", "internal", "weighted")


def correlation(
    name: str, W: Array, V: Array | None = None, *, U: Array | None = None
) -> Any:
    """Correlation between the columns of W and V.

    Parameters
    ----------
    name
        - ``"columnwise"``: mean over j of ``|cos(w_j, v_j)|`` (Definition 49)
        - ``"optimal"``: the same after the one-to-one matching with the largest mean
          (Definition 50)
        - ``"internal"``: W against itself, each column matched to another one (Definition 51): how
          redundant the dictionary is. V does not enter and may be left out
        - ``"weighted"``: the optimal matching, each column of W weighted by its share of the
          absolute codes, ``u_j = sum_i |U_ij| / sum_ij |U_ij|`` (Definition 52, its sums run to r)
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch.
    U
        Codes that belong to W, shape (..., n, r); for ``"weighted"`` only.

    Returns
    -------
    float, or an array of shape (...)
        Without unit, between 0 and 1.

    Raises
    ------
    ArgumentError
        If the name or a shape is wrong, U is missing or given in vain, or ``"internal"`` has fewer
        than two columns.

    Notes
    -----
    Bernas (2025), Definitions 49 to 52. Invariant when a column is scaled or flipped; all but the
    first also when columns are permuted (the weighted one with U alike). Codes that are all zero
    weigh every column alike.

    Examples
    --------
    >>> correlation("columnwise", [[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [1.0, 0.0]])
    0.0
    >>> correlation("optimal", [[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [1.0, 0.0]])
    1.0
    """
    check_choice("name", name, CORRELATIONS)
    if (U is not None) != (name == "weighted"):
        need = "needs the codes U of W" if U is None else "takes no U"
        raise ArgumentError(f"correlation {name!r} {need}.")
    if name == "internal":
        factors, argument = stacked("W", W)
        return give(internal_of(factors), argument)
    if V is None:
        raise ArgumentError(f"correlation {name!r} needs both W and V.")
    pair, argument = pair_of(W, V)
    weights = None if U is None else column_weights(U, argument)
    return give(correlations_of(pair, weights)[name](), argument)


def correlations_of(
    pair: Pair, weights: Array | None
) -> dict[str, Callable[[], Array]]:
    """Return what computes each correlation that there is of a pair of stacks, by name."""
    values: dict[str, Callable[[], Array]]
    values = {
        "columnwise": partial(columnwise_of, pair),
        "optimal": partial(optimal_of, pair),
    }
    if pair.first.stack.shape[-1] > 1:
        values["internal"] = partial(internal_of, pair.first)
    if weights is not None:
        values["weighted"] = partial(weighted_of, pair, weights)
    return values


def columnwise_of(pair: Pair) -> Array:
    """Mean absolute cosine of equal columns."""
    xp = pair.xp
    return xp.mean(xp.linalg.diagonal(pair.cosines), axis=-1)


def optimal_of(pair: Pair) -> Array:
    """Mean absolute cosine of matched columns."""
    return pair.xp.mean(pair.matched, axis=-1)


def weighted_of(pair: Pair, weights: Array) -> Array:
    """Absolute cosines of matched columns, weighted by column of W (k, r)."""
    return pair.xp.sum(pair.matched * weights, axis=-1)


def internal_of(factors: Factors) -> Array:
    """Mean ``|cos|`` of every column with its match among the other columns of the same matrix."""
    xp = namespace(factors.stack)
    similarity = cosines(factors.stack.mT @ factors.stack, factors, factors)
    r = similarity.shape[-1]
    if r < 2:
        raise ArgumentError(
            "'internal' matches each column to another one; W has only one."
        )
    others = xp.where(
        xp.eye(r, dtype=xp.bool, device=similarity.device), -xp.inf, similarity
    )
    return xp.mean(picked(similarity, assignments(others)), axis=-1)


def column_weights(U: Array, argument: Array) -> Array:
    """Share of every column of the codes U (..., n, r) in their absolute sum, (k, r)."""
    codes = codes_of("U", U, argument)
    xp = namespace(codes, argument)
    sums = xp.sum(xp.abs(codes), axis=-2)
    total = xp.sum(sums, axis=-1, keepdims=True)
    equal = xp.full_like(sums, 1.0 / sums.shape[-1])
    return xp.where(
        total > 0, sums / xp.where(total > 0, total, xp.ones_like(total)), equal
    )
