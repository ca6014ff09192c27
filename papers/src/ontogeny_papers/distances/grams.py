"""Similarity of representations by the inner products of their examples."""

from __future__ import annotations

from typing import Any

from ontogeny.arrays import Array, namespace
from ontogeny.distances.pair import double
from ontogeny.errors import ArgumentError


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
    xp, n = namespace(K, L), K.shape[-1]
    fits = K.ndim == 3 and L.ndim == 3 and tuple(K.shape[1:]) == tuple(L.shape[1:]) == (n, n)
    if not fits or n < 4:
        raise ArgumentError(
            "K and L must hold inner products of the same n examples, (s, n, n) and (t, n, n) with "
            f"n at least 4; got {tuple(K.shape)} and {tuple(L.shape)}."
        )
    off = 1.0 - xp.eye(n, dtype=K.dtype, device=K.device)
    K, L = K * off, L * off

    def hsic(A: Array, B: Array, product: Any) -> Array:
        rows = [xp.sum(side, axis=-1) for side in (A, B)]
        sums = [xp.sum(values, axis=-1) for values in rows]
        flat = [xp.reshape(side, (side.shape[0], -1)) for side in (A, B)]
        both = product(sums[0][:, None], sums[1][:, None]) / ((n - 1) * (n - 2))
        return product(*flat) + both - 2.0 * product(*rows) / (n - 2)

    norms = [hsic(side, side, lambda a, b: xp.sum(a * b, axis=-1)) for side in (K, L)]
    if not all(bool(xp.all(values > 0)) for values in norms):
        raise ArgumentError("all examples are equal: nothing can be correlated with them.")
    similarity = hsic(K, L, lambda a, b: a @ b.mT)
    return xp.astype(similarity / xp.sqrt(norms[0][:, None] * norms[1][None, :]), argument.dtype)
