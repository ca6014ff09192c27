"""Norms of a residual matrix: value, proximal map and dual norm, for `fit_encoder`.

A norm that treats columns one by one gives one value a column, the others one value in all; the
sum of the values is what is minimised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ontogeny.arrays import Array, namespace


class ResidualNorm(NamedTuple):
    """A norm f of a residual R (n, r), as the splitting method needs it."""

    value: Callable[[Array], Array]
    """f(R): one value a column (r,), or one in all (1,)."""
    prox: Callable[[Array, Array], Array]
    """The R that minimises ``step f(R) + |R - V|² / 2``, from V and the step."""
    dual: Callable[[Array], Array]
    """The dual norm of a matrix, one a column or one in all."""
    by_column: bool = False
    """Whether columns are fitted one by one."""
    peaked: bool = False
    """Whether about as few entries carry it at the minimum as there are coordinates."""


def _column_sums(R: Array) -> Array:
    xp = namespace(R)
    return xp.sum(xp.abs(R), axis=0)


def _column_maxima(R: Array) -> Array:
    xp = namespace(R)
    return xp.max(xp.abs(R), axis=0)


def _clipped_columns(V: Array, step: Array) -> Array:
    xp = namespace(V)
    level = _level(xp.abs(V).mT, step[:, None])[..., 0]
    return xp.clip(V, -level, level)


def _largest_row_sum(R: Array) -> Array:
    xp = namespace(R)
    return xp.reshape(xp.max(xp.sum(xp.abs(R), axis=1)), (1,))


def _sum_of_row_maxima(Z: Array) -> Array:
    xp = namespace(Z)
    return xp.reshape(xp.sum(xp.max(xp.abs(Z), axis=1)), (1,))


def _shrunk_rows(V: Array, step: Array) -> Array:
    """Return the proximal map of the largest row sum: every row is shrunk by its own amount."""
    xp = namespace(V)
    size = xp.abs(V)
    total = xp.cumulative_sum(xp.sort(size, axis=1, descending=True), axis=1)
    count = xp.arange(1, V.shape[1] + 1, dtype=V.dtype, device=V.device)
    radius = 0.0
    mass = float(step[0])
    while True:  # Newton from the left on a convex, falling, piecewise linear function
        shares = (total - radius) / count
        at = xp.argmax(shares, axis=1)
        cut = xp.clip(xp.max(shares, axis=1), 0.0, None)
        excess = float(xp.sum(cut)) - mass
        slope = float(xp.sum(xp.where(cut > 0, 1.0 / count[at], 0.0 * cut)))
        if excess <= 1e-12 * mass or radius + excess / slope <= radius:
            return _soft(V, cut[:, None])
        radius += excess / slope


def _of_singular_values(
    norm: Callable[[Array], Array],
    shrink: Callable[[Array, Array], Array],
    dual: Callable[[Array], Array],
) -> ResidualNorm:
    """Return a norm of the singular values, from norm, proximal map and dual norm of a vector."""

    def prox(V: Array, step: Array) -> Array:
        left, values, right = namespace(V).linalg.svd(V, full_matrices=False)
        return (left * shrink(values, step)) @ right

    def value(R: Array, of: Callable[[Array], Array] = norm) -> Array:
        xp = namespace(R)
        return xp.reshape(of(xp.linalg.svdvals(R)), (1,))

    return ResidualNorm(value, prox, lambda Z: value(Z, dual))


def _soft(V: Array, by: Array) -> Array:
    """Shrink every entry towards 0 by `by`."""
    xp = namespace(V)
    return V - xp.clip(V, -by, by)


def _level(sizes: Array, mass: Array) -> Array:
    """Return the t >= 0 above which `sizes` (..., n) hold `mass`: sum(max(size - t, 0)) = mass.

    Newton's method from the left on a convex, falling, piecewise linear function: few steps, and
    no sorting.
    """
    xp = namespace(sizes)
    level = xp.clip(xp.max(sizes, axis=-1, keepdims=True) - mass, 0.0, None)
    while True:
        above = sizes > level
        excess = (
            xp.sum(xp.where(above, sizes - level, 0.0 * sizes), axis=-1, keepdims=True)
            - mass
        )
        count = xp.sum(xp.astype(above, sizes.dtype), axis=-1, keepdims=True)
        moved = level + xp.clip(excess, 0.0, None) / xp.clip(count, 1.0, None)
        if bool(xp.all(moved <= level * (1 + 1e-15))):
            return level
        level = moved


def _sum(values: Array) -> Array:
    return namespace(values).sum(values)


def _largest(values: Array) -> Array:
    return namespace(values).max(values)


def _cut(values: Array, step: Array) -> Array:
    xp = namespace(values)
    return xp.minimum(values, _level(values, step))


# The induced l1 norm is the largest column sum: fitting every column in l1 minimises it too.
_L1 = ResidualNorm(_column_sums, _soft, _column_maxima, by_column=True)
NORMS: dict[str, ResidualNorm] = {
    "nuclear": _of_singular_values(_sum, _soft, _largest),
    "2": _of_singular_values(_largest, _cut, _sum),
    "l1": _L1,
    "linf": ResidualNorm(
        _column_maxima, _clipped_columns, _column_sums, by_column=True, peaked=True
    ),
    "induced-l1": _L1,
    "induced-linf": ResidualNorm(
        _largest_row_sum, _shrunk_rows, _sum_of_row_maxima, peaked=True
    ),
}


def matrix_norm(R: Array, norm: str) -> float:
    """Return a norm of a matrix by the names that `encode` knows.

    Examples
    --------
    >>> import numpy as np
    >>> R = np.array([[1.0, -2.0], [3.0, 0.0]])
    >>> [matrix_norm(R, name) for name in ("l1", "linf", "induced-l1", "induced-linf")]
    [6.0, 3.0, 4.0, 3.0]
    """
    xp = namespace(R)
    if norm == "fro":
        return float(xp.linalg.matrix_norm(R))
    gather: Any = xp.sum if norm in ("l1", "nuclear", "2") else xp.max
    return float(gather(NORMS[norm].value(R)))
