"""Norms of a residual matrix: value, proximal map and dual norm, for `fit_encoder`.

A norm that treats columns one by one gives one value a column, the others one value in all; the
sum of the values is what is minimised.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from ..arrays import Array, namespace


class ResidualNorm(abc.ABC):
    """A norm f of a residual R (n, r), as the splitting method needs it."""

    by_column = False
    """Whether columns are fitted one by one."""
    peaked = False
    """Whether about as few entries carry it at the minimum as there are coordinates."""

    @abc.abstractmethod
    def value(self, R: Array) -> Array:
        """Return f(R): one value a column (r,), or one in all (1,)."""

    @abc.abstractmethod
    def prox(self, V: Array, step: Array) -> Array:
        """Return the R that minimises ``step f(R) + |R - V|² / 2``."""

    @abc.abstractmethod
    def dual(self, Z: Array) -> Array:
        """Return the dual norm of Z, one a column or one in all."""


class _L1(ResidualNorm):
    """Sum of absolute entries."""

    by_column = True

    def value(self, R: Array) -> Array:
        xp = namespace(R)
        return xp.sum(xp.abs(R), axis=0)

    def prox(self, V: Array, step: Array) -> Array:
        return _soft(V, step)

    def dual(self, Z: Array) -> Array:
        xp = namespace(Z)
        return xp.max(xp.abs(Z), axis=0)


class _Linf(ResidualNorm):
    """Largest absolute entry of every column."""

    by_column = True
    peaked = True

    def value(self, R: Array) -> Array:
        xp = namespace(R)
        return xp.max(xp.abs(R), axis=0)

    def prox(self, V: Array, step: Array) -> Array:
        xp = namespace(V)
        level = _level(xp.abs(V).mT, step[:, None])[..., 0]
        return xp.clip(V, -level, level)

    def dual(self, Z: Array) -> Array:
        xp = namespace(Z)
        return xp.sum(xp.abs(Z), axis=0)


class _InducedLinf(ResidualNorm):
    """Largest row sum of absolute entries."""

    peaked = True

    def value(self, R: Array) -> Array:
        xp = namespace(R)
        return xp.reshape(xp.max(xp.sum(xp.abs(R), axis=1)), (1,))

    def prox(self, V: Array, step: Array) -> Array:
        xp = namespace(V)
        size = xp.abs(V)
        total = xp.cumulative_sum(xp.sort(size, axis=1, descending=True), axis=1)
        count = xp.arange(1, V.shape[1] + 1, dtype=V.dtype, device=V.device)
        radius, mass = 0.0, float(step[0])
        while True:  # Newton from the left on a convex, falling, piecewise linear function
            shares = (total - radius) / count
            at = xp.argmax(shares, axis=1)
            cut = xp.clip(xp.max(shares, axis=1), 0.0, None)
            excess = float(xp.sum(cut)) - mass
            slope = float(xp.sum(xp.where(cut > 0, 1.0 / count[at], 0.0 * cut)))
            if excess <= 1e-12 * mass or radius + excess / slope <= radius:
                return _soft(V, cut[:, None])
            radius += excess / slope

    def dual(self, Z: Array) -> Array:
        xp = namespace(Z)
        return xp.reshape(xp.sum(xp.max(xp.abs(Z), axis=1)), (1,))


class _Singular(ResidualNorm):
    """A norm of the singular values; `prox` and `dual` are built from those of the values."""

    def __init__(
        self,
        norm: Callable[[Array], Array],
        shrink: Callable[[Array, Array], Array],
        dual: Callable[[Array], Array],
    ) -> None:
        self._norm, self._shrink, self._dual = norm, shrink, dual

    def value(self, R: Array) -> Array:
        xp = namespace(R)
        return xp.reshape(self._norm(xp.linalg.svdvals(R)), (1,))

    def prox(self, V: Array, step: Array) -> Array:
        left, values, right = namespace(V).linalg.svd(V, full_matrices=False)
        return (left * self._shrink(values, step)) @ right

    def dual(self, Z: Array) -> Array:
        xp = namespace(Z)
        return xp.reshape(self._dual(xp.linalg.svdvals(Z)), (1,))


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
        excess = xp.sum(xp.where(above, sizes - level, 0.0 * sizes), axis=-1, keepdims=True) - mass
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


_NUCLEAR = _Singular(_sum, lambda values, step: _soft(values, step), _largest)
_SPECTRAL = _Singular(_largest, _cut, _sum)
# The induced l1 norm is the largest column sum: fitting every column in l1 minimises it too.
NORMS: dict[str, ResidualNorm] = {
    "nuclear": _NUCLEAR,
    "2": _SPECTRAL,
    "l1": _L1(),
    "linf": _Linf(),
    "induced-l1": _L1(),
    "induced-linf": _InducedLinf(),
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
