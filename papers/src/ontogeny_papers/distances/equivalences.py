"""Equivalence of factorisations: one transformation of the codes and the dictionary together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ontogeny.arrays import Array, namespace
from ontogeny.distances.matching import assignments, permutations
from ontogeny.distances.nearest import diagonal
from ontogeny.distances.pair import codes_of, double, give, give_stack, pair_of, squares
from ontogeny.errors import ArgumentError, check_choice

from .alignment import EQUIVALENCES, align


class Equivalence(NamedTuple):
    """What `equivalence` found; the pairs are equivalent if both residuals are near 0.

    Attributes
    ----------
    dictionary
        ``||W - V T||_F / ||W||_F``, a float or an array of shape (...).
    codes
        ``||X - U T^T||_F / ||X||_F``.
    transform
        T, (..., r, r).
    """

    dictionary: Any
    codes: Any
    transform: Array


def equivalence(
    U: Array, W: Array, X: Array, V: Array, under: str = "signed-permutation"
) -> Equivalence:
    """Test whether two factorisations (U, W) and (X, V) are equivalent.

    They are if one T of the group gives ``W = V T`` and ``X = U T^T``, so that both have the same
    product ``U W^T = X V^T``. Dictionaries alone may be equivalent where the pairs are not:
    two concepts with the same direction and exchanged codes, for example.

    Parameters
    ----------
    U, W
        Codes (..., n, r) and dictionary (..., m, r), NumPy or PyTorch.
    X, V
        Codes and dictionary of the other factorisation, of the same shapes.
    under
        The group of T, one of those of `align`.

    Returns
    -------
    Equivalence
        The residuals ``dictionary`` and ``codes``, and the ``transform``. Both near the precision
        of the numbers mean that the pairs are equivalent. Refits and other steps are equivalent
        in part: compare their residuals with those of refits.

    Raises
    ------
    ArgumentError
        If a shape does not fit, `under` is unknown, or W or X is zero.

    Notes
    -----
    Bernas (2025), Definitions 31 to 34 and 54, on pairs as they are defined there. T minimises the
    sum of the squared residuals exactly. Invertible T solves a Sylvester equation, so that nothing
    is inverted.

    Examples
    --------
    >>> import numpy as np
    >>> U, W = np.random.default_rng(0).standard_normal((2, 6, 3))
    >>> X, V = U[:, [2, 0, 1]] * 2.0, W[:, [2, 0, 1]] / 2.0
    >>> distances = equivalence(U, W, X, V, under="scaled-permutation")
    >>> distances.dictionary < 1e-12 and distances.codes < 1e-12
    True
    >>> equivalence(U, W, X, V, under="rotation").codes > 0.1
    True
    """
    check_choice("under", under, EQUIVALENCES)
    pair, argument = pair_of(W, V)
    codes = codes_of("U", U, argument)
    others = codes_of("X", X, argument)
    if codes.shape != others.shape:
        raise ArgumentError(
            f"U and X must have the same shape; got {tuple(codes.shape)} and {tuple(others.shape)}."
        )
    sides = _Sides(
        _share(pair.first.stack, "W", of=pair.first.stack),
        _share(pair.second.stack, "W", of=pair.first.stack),
        _share(codes, "X", of=others),
        _share(others, "X", of=others),
    )
    T = _FINDERS.get(under, _orthogonal(under))(sides)
    xp = pair.xp
    gaps = (
        xp.sqrt(squares(sides.W - sides.V @ T)),
        xp.sqrt(squares(sides.X - sides.U @ T.mT)),
    )
    return Equivalence(
        give(gaps[0], argument), give(gaps[1], argument), give_stack(T, argument)
    )


class _Sides(NamedTuple):
    """Stacks (k, ., r): dictionaries in units of the norm of W, codes in units of that of X."""

    W: Array
    V: Array
    U: Array
    X: Array


def _share(stack: Array, name: str, *, of: Array) -> Array:
    xp = namespace(stack, of)
    size = xp.sqrt(squares(of))
    if not bool(xp.all(size > 0)):
        raise ArgumentError(f"{name} is zero: nothing of it could be left.")
    return stack / size[..., None, None]


def _orthogonal(under: str) -> Callable[[_Sides], Array]:
    """For orthogonal T, ``X = U T^T`` is ``U = X T``: both equations are one of longer columns."""

    def find(sides: _Sides) -> Array:
        xp = namespace(sides.W)
        here = [sides.W, sides.U]
        there = [sides.V, sides.X]
        return align(
            xp.concat(here, axis=-2), xp.concat(there, axis=-2), under
        ).transform

    return find


def _scaling(sides: _Sides) -> Array:
    xp = namespace(sides.W)
    inner = xp.sum(sides.V * sides.W, axis=-2) + xp.sum(sides.U * sides.X, axis=-2)
    size = xp.sum(sides.V**2, axis=-2) + xp.sum(sides.U**2, axis=-2)
    usable = (size > 0) & (inner != 0)
    return diagonal(
        xp.where(usable, inner / xp.where(usable, size, 1.0), xp.ones_like(inner))
    )


def _scaled_permutation(sides: _Sides) -> Array:
    # With its best scale, column j of (X, V) explains gain_ij of column i of (U, W).
    xp = namespace(sides.W)
    inner = sides.W.mT @ sides.V + sides.U.mT @ sides.X
    size = (
        xp.sum(sides.V**2, axis=-2)[..., None, :]
        + xp.sum(sides.U**2, axis=-2)[..., :, None]
    )
    gain = inner**2 / xp.where(size > 0, size, xp.ones_like(size))
    permutation = permutations(assignments(gain), gain)
    return permutation @ _scaling(
        sides._replace(V=sides.V @ permutation, X=sides.X @ permutation)
    )


def _invertible(sides: _Sides) -> Array:
    """Solve ``V^T V T + T U^T U = V^T W + X^T U``; the smallest T where it is not unique."""
    xp = namespace(sides.W)
    a, P = xp.linalg.eigh(sides.V.mT @ sides.V)
    b, Q = xp.linalg.eigh(sides.U.mT @ sides.U)
    total = a[..., :, None] + b[..., None, :]
    is_large = total > 1e-14 * xp.max(total, axis=(-2, -1), keepdims=True)
    right = P.mT @ (sides.V.mT @ sides.W + sides.X.mT @ sides.U) @ Q
    return P @ xp.where(is_large, right / xp.where(is_large, total, 1.0), 0.0) @ Q.mT


_FINDERS: dict[str, Callable[[_Sides], Array]] = {
    "scaling": _scaling,
    "scaled-permutation": _scaled_permutation,
    "invertible": _invertible,
}


def cka_of_grams(K: Array, L: Array | None = None) -> Any:
    """Unbiased centred kernel alignment of every two of some representations, by inner products.

    Parameters
    ----------
    K, L
        Inner products of the same n examples in s and t representations, (s, n, n) and (t, n, n),
        NumPy or PyTorch, n at least 4. Without L, K stands on both sides.

    Returns
    -------
    array of shape (s, t)
        As `cka` of the representations themselves: 1 for equal ones.

    Raises
    ------
    ArgumentError
        If shapes do not fit, there are too few examples, or all examples are equal.

    Notes
    -----
    HSIC is that of Song et al. (2012), equation 4: inner products without their diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> from ontogeny.distances import cka
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> Y = X[:, :2]
    >>> similarity = cka_of_grams(np.stack([X @ X.T, Y @ Y.T]))
    >>> bool(np.isclose(similarity[0, 1], cka(X, Y)))
    True
    """
    K, argument = double("K", K)
    L = K if L is None else double("L", L)[0]
    xp = namespace(K, L)
    n = K.shape[-1]
    fits = (
        K.ndim == 3
        and L.ndim == 3
        and tuple(K.shape[1:]) == tuple(L.shape[1:]) == (n, n)
    )
    if not fits or n < 4:
        raise ArgumentError(
            "K and L must hold inner products of the same n examples, (s, n, n) and (t, n, n) with "
            f"n at least 4; got {tuple(K.shape)} and {tuple(L.shape)}."
        )
    off = 1.0 - xp.eye(n, dtype=K.dtype, device=K.device)
    K = K * off
    L = L * off

    def hsic(A: Array, B: Array, product: Any) -> Array:
        rows = [xp.sum(side, axis=-1) for side in (A, B)]
        sums = [xp.sum(values, axis=-1) for values in rows]
        flat = [xp.reshape(side, (side.shape[0], -1)) for side in (A, B)]
        both = product(sums[0][:, None], sums[1][:, None]) / ((n - 1) * (n - 2))
        return product(*flat) + both - 2.0 * product(*rows) / (n - 2)

    norms = [hsic(side, side, lambda a, b: xp.sum(a * b, axis=-1)) for side in (K, L)]
    if not all(bool(xp.all(values > 0)) for values in norms):
        raise ArgumentError(
            "all examples are equal: nothing can be correlated with them."
        )
    similarity = hsic(K, L, lambda a, b: a @ b.mT)
    return xp.astype(
        similarity / xp.sqrt(norms[0][:, None] * norms[1][None, :]), argument.dtype
    )
