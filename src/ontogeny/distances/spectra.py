"""Summaries of one matrix, and distances between such summaries: what neighbours also measure.

They look at size, spectrum and sparsity only: two matrices that share nothing else can be at
distance zero. Use them beside the nine distances, not in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Array, namespace
from ..errors import ArgumentError
from .pair import Factors, Pair, give, measured, stacked

__all__ = [
    "condition_number",
    "condition_number_distance",
    "eigenvalue_distance",
    "gini",
    "hoyer",
    "norm_distance",
    "proportional_effective_rank",
    "singular_value_distance",
]


def condition_number(W: Array) -> Any:
    """Largest singular value of W (..., m, r) over its smallest; infinite if rank-deficient.

    A singular value below max(m, r) times the precision of the dtype that came in counts as zero.

    Raises
    ------
    ArgumentError
        If W is not a numeric array with at least two dimensions.

    Examples
    --------
    >>> condition_number([[4.0, 0.0], [0.0, 2.0]])
    2.0
    """
    factors, given = stacked("W", W)
    return give(_condition(factors), given)


def proportional_effective_rank(W: Array) -> Any:
    """Entropy rank exp(H(s / sum s)) of the singular values over min(m, r); from 0 to 1.

    Roy and Vetterli (2007), in proportion as in pico-analyze. W has shape (..., m, r); a zero
    matrix has 0.

    Raises
    ------
    ArgumentError
        If W is not a numeric array with at least two dimensions.

    Examples
    --------
    >>> round(proportional_effective_rank([[4.0, 0.0], [0.0, 4.0]]), 6)
    1.0
    """
    factors, given = stacked("W", W)
    xp = namespace(factors.stack)
    values = xp.linalg.svdvals(factors.stack)
    total = xp.sum(values, axis=-1, keepdims=True)
    share = values / xp.where(total > 0, total, 1.0)
    entropy = -xp.sum(share * xp.log(xp.where(share > 0, share, 1.0)), axis=-1)
    rank = xp.where(total[..., 0] > 0, xp.exp(entropy), 0.0)
    return give(rank / values.shape[-1], given)


def gini(W: Array) -> Any:
    """Gini coefficient of the absolute entries of W (..., m, r): 0 if all equal, near 1 if sparse.

    Hurley and Rickard (2009). A zero matrix has 0.

    Raises
    ------
    ArgumentError
        If W is not a numeric array with at least two dimensions.

    Examples
    --------
    >>> gini([[0.0, 0.0], [0.0, 8.0]])
    0.75
    """
    return _of_entries(W, _gini)


def hoyer(W: Array) -> Any:
    """Hoyer sparsity (sqrt(n) - ||w||_1 / ||w||_2) / (sqrt(n) - 1) of the n entries of W; 0 to 1.

    Hoyer (2004). W has shape (..., m, r); a zero matrix has 0.

    Raises
    ------
    ArgumentError
        If W has a single entry.

    Examples
    --------
    >>> hoyer([[0.0, 0.0], [0.0, 8.0]])
    1.0
    """
    return _of_entries(W, _hoyer)


def singular_value_distance(W: Array, V: Array) -> Any:
    """Euclidean distance between the sorted singular values of W and V (..., m, r).

    Raises
    ------
    ArgumentError
        If the shapes differ.

    Examples
    --------
    >>> singular_value_distance([[3.0, 0.0], [0.0, 4.0]], [[0.0, 4.0], [0.0, 0.0]])
    3.0
    """
    return measured(_singular_values, W, V)


def eigenvalue_distance(W: Array, V: Array) -> Any:
    """Euclidean distance between the sorted eigenvalues of W W^T and V V^T; W, V (..., m, r).

    Raises
    ------
    ArgumentError
        If the shapes differ.

    Examples
    --------
    >>> round(eigenvalue_distance([[3.0, 0.0], [0.0, 4.0]], [[0.0, 4.0], [0.0, 0.0]]), 6)
    9.0
    """
    return measured(_eigenvalues, W, V)


def norm_distance(W: Array, V: Array) -> Any:
    """Difference of the Frobenius norms, ``| ||W||_F - ||V||_F |``; W, V (..., m, r).

    Raises
    ------
    ArgumentError
        If the shapes differ.

    Examples
    --------
    >>> norm_distance([[3.0, 0.0], [0.0, 4.0]], [[0.0, 4.0], [0.0, 0.0]])
    1.0
    """
    return measured(_norms, W, V)


def condition_number_distance(W: Array, V: Array) -> Any:
    """Difference of the condition numbers of W and V (..., m, r).

    Raises
    ------
    ArgumentError
        If the shapes differ, or one of them is rank-deficient, so that there is no finite number.

    Examples
    --------
    >>> condition_number_distance([[4.0, 0.0], [0.0, 2.0]], [[4.0, 0.0], [0.0, 4.0]])
    1.0
    """
    return measured(_conditions, W, V)


def _singular_values(pair: Pair) -> Array:
    xp = pair.xp
    first, second = (xp.linalg.svdvals(f.stack) for f in (pair.first, pair.second))
    return xp.sqrt(xp.sum((first - second) ** 2, axis=-1))


def _eigenvalues(pair: Pair) -> Array:
    xp = pair.xp
    first, second = (xp.linalg.svdvals(f.stack) for f in (pair.first, pair.second))
    return xp.sqrt(xp.sum(((first - second) * (first + second)) ** 2, axis=-1))


def _norms(pair: Pair) -> Array:
    return pair.xp.abs(pair.xp.sqrt(pair.first.squares) - pair.xp.sqrt(pair.second.squares))


def _conditions(pair: Pair) -> Array:
    first, second = _condition(pair.first), _condition(pair.second)
    if not bool(pair.xp.all(pair.xp.isfinite(first) & pair.xp.isfinite(second))):
        raise ArgumentError("W or V is rank-deficient: its condition number is infinite.")
    return pair.xp.abs(first - second)


def _condition(factors: Factors) -> Array:
    xp = namespace(factors.stack)
    values = factors.svd[1]
    full = factors.ranked(None)[..., -1]
    return xp.where(full, values[..., 0] / xp.where(full, values[..., -1], 1.0), xp.inf)


def _of_entries(W: Array, measure: Callable[[Array], Array]) -> Any:
    factors, given = stacked("W", W)
    xp = namespace(factors.stack)
    size = xp.abs(xp.reshape(factors.stack, (factors.stack.shape[0], -1)))
    if size.shape[-1] < 2:
        raise ArgumentError("sparsity needs at least two entries; W has one.")
    largest = xp.max(size, axis=-1, keepdims=True)
    # All zero is all equal: sparsity 0, as for any constant matrix.
    return give(
        measure(xp.where(largest > 0, size / xp.where(largest > 0, largest, 1.0), 1.0)), given
    )


def _gini(size: Array) -> Array:
    xp = namespace(size)
    n = size.shape[-1]
    rank = xp.arange(1, n + 1, dtype=size.dtype, device=size.device)
    ordered = xp.sort(size, axis=-1)
    return xp.sum((2 * rank - n - 1) * ordered, axis=-1) / (n * xp.sum(ordered, axis=-1))


def _hoyer(size: Array) -> Array:
    xp = namespace(size)
    root = size.shape[-1] ** 0.5
    ratio = xp.sum(size, axis=-1) / xp.sqrt(xp.sum(size * size, axis=-1))
    return xp.clip((root - ratio) / (root - 1), 0.0, 1.0)
