"""Alignment: the member of a group of transformations that brings V nearest to W."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ontogeny.arrays import Array, namespace
from ontogeny.distances.matching import assignments, permutations
from ontogeny.distances.nearest import (
    diagonal,
    least_squares_of,
    signed_permutation_of,
    signs,
)
from ontogeny.distances.norms import frobenius_of
from ontogeny.distances.pair import Factors, Pair, give, give_stack, pair_of
from ontogeny.distances.rotations import best_rotation, procrustes_of
from ontogeny.errors import ArgumentError, check_choice


class Alignment(NamedTuple):
    """What `align` found: ``aligned = V @ transform``; the codes become ``U @ inv(transform).T``.

    Attributes
    ----------
    aligned
        V transformed, (..., m, r).
    transform
        The transformation, (..., r, r).
    """

    aligned: Array
    transform: Array


def align(W: Array, V: Array, under: str = "permutation") -> Alignment:
    """Bring V as near to W as one kind of equivalence allows.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch; W stays.
    under
        The group over which ``||W - V T||_F`` is minimised:

        - ``"permutation"``: T permutes columns (Definition 31)
        - ``"sign"``: T flips columns (Definition 33)
        - ``"signed-permutation"``: both, the freedom of a canonical ICA or sparse PCA
        - ``"scaling"``: T is diagonal (Definition 32)
        - ``"scaled-permutation"``: T permutes and scales columns, the full freedom of ICA
        - ``"rotation"``: T is orthogonal (Definition 34), as in `procrustes`
        - ``"invertible"``: any T (Definition 54); the least-squares solution of smallest norm

    Returns
    -------
    Alignment
        The pair ``(aligned, transform)``, of the kind and dtype of W.

    Raises
    ------
    ArgumentError
        If the shapes differ or `under` is not one of these.

    Notes
    -----
    Each is an exact minimum. The codes that belong to ``V T`` are ``U T^-T``, so that ``U W^T``
    stays. A scale that would be exactly zero (orthogonal columns) is left at 1. The rotation of
    a rank-deficient pair and the invertible T of a rank-deficient V are not unique.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    >>> aligned, transform = align(W, -W[:, ::-1], under="signed-permutation")
    >>> bool((aligned == W).all())
    True
    """
    find = _FINDERS[check_choice("under", under, _FINDERS)]
    pair, argument = pair_of(W, V)
    transform = find(pair)
    aligned = pair.second.stack @ transform
    return Alignment(give_stack(aligned, argument), give_stack(transform, argument))


def aligned_to(reference: Array, W: Array) -> np.ndarray:
    """Return dictionaries (steps, m, r), permuted and signed to fit one reference (m, r)."""
    base = np.broadcast_to(reference, W.shape)
    return np.asarray(align(base, W, under="signed-permutation").aligned)


def alignment_residual(W: Array, V: Array, under: str = "permutation") -> Any:
    """Share of W that is left after the best alignment: 0 if V is equivalent to W, at most 1 or so.

    Parameters
    ----------
    W, V, under
        As for `align`.

    Returns
    -------
    float, or an array of shape (...)
        ||W - V T||_F / ||W||_F with the T that `align` finds; 0 between two zero matrices. A
        residual near the precision of the numbers means that the two are equivalent in the sense
        of Definitions 31 to 34 and 54.

    Raises
    ------
    ArgumentError
        If the shapes differ, `under` is unknown, or W is zero where V is not.

    Examples
    --------
    >>> W = [[1.0, 0.0], [0.0, 2.0]]
    >>> V = [[0.0, -1.0], [2.0, 0.0]]
    >>> (
    ...     alignment_residual(W, V, "permutation") > 0.1,
    ...     alignment_residual(W, V, "rotation") < 1e-12,
    ... )
    (True, True)
    """
    pair, argument = pair_of(W, V)
    if under == "rotation":  # has a form of its own that is exact near zero
        residual = procrustes_of(pair)
    else:
        aligned = Factors(
            align(pair.first.stack, pair.second.stack, under).aligned, pair.second.floor
        )
        residual = frobenius_of(Pair(pair.first, aligned))
    size = pair.xp.sqrt(pair.first.squares)
    if bool(pair.xp.any((size == 0) & (residual > 0))):
        raise ArgumentError("W is zero: nothing of it could be left.")
    return give(
        residual / pair.xp.where(size > 0, size, pair.xp.ones_like(size)), argument
    )


def _permutation(pair: Pair) -> Array:
    return permutations(assignments(pair.inner), pair.inner)


def _sign(pair: Pair) -> Array:
    return diagonal(signs(pair.first.stack, pair.second.stack))


def _scaling(pair: Pair) -> Array:
    return diagonal(_scales(pair.first.stack, pair.second.stack))


def _scaled_permutation(pair: Pair) -> Array:
    # With its best scale, v_j explains ||w_i||^2 cos^2 of column w_i.
    xp = pair.xp
    lengths = xp.sum(pair.first.stack**2, axis=-2)
    permutation = permutations(
        assignments(pair.cosines**2 * lengths[..., None]), lengths
    )
    return permutation @ diagonal(
        _scales(pair.first.stack, pair.second.stack @ permutation)
    )


def _rotation(pair: Pair) -> Array:
    return best_rotation(pair.inner.mT)


def _scales(first: Array, second: Array) -> Array:
    xp = namespace(first, second)
    inner = _matched_products(first, second)
    lengths = xp.sum(second * second, axis=-2)
    usable = (lengths > 0) & (inner != 0)
    return xp.where(usable, inner / xp.where(usable, lengths, 1.0), xp.ones_like(inner))


def _matched_products(first: Array, second: Array) -> Array:
    return namespace(first, second).sum(first * second, axis=-2)


_FINDERS: dict[str, Callable[[Pair], Array]] = {
    "permutation": _permutation,
    "sign": _sign,
    "signed-permutation": signed_permutation_of,
    "scaling": _scaling,
    "scaled-permutation": _scaled_permutation,
    "rotation": _rotation,
    "invertible": least_squares_of,
}
EQUIVALENCES: tuple[str, ...] = tuple(_FINDERS)
