"""Contexts and words with the same signature, and whether the one leads to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ontogeny.errors import ArgumentError, check_whole
from ontogeny.features.wordspace.concepts import ConceptBasis, signatures, values_of
from ontogeny.features.wordspace.support import Support

from .orthant import checked_dims
from .scores import Score, random_rotation

# One orthant of words and one of contexts for each signature: 4^12 numbers at most.
MOST_DIMS = 12


@dataclass(frozen=True, eq=False)
class SignatureLift:
    """How dense the support is between words and contexts, by how their signatures differ.

    Parameters
    ----------
    by_distance
        Density of the support among pairs whose signatures differ in h concepts, divided by the
        density over all pairs, shape (p + 1,); NaN where there is no such pair.
    permuted
        The same with signatures permuted among the words, shape (draws, p + 1).
    rotated
        The same after random rotations of both sides inside the same concepts.

    Examples
    --------
    >>> SignatureLift(
    ...     np.array([3.0, 0.5]), np.ones((4, 2)), np.ones((4, 2))
    ... ).lift.p_value
    0.2
    """

    by_distance: np.ndarray
    permuted: np.ndarray
    rotated: np.ndarray

    @property
    def lift(self) -> Score:
        """Of pairs with the same signature."""
        return Score(
            float(self.by_distance[0]), self.permuted[:, 0], self.rotated[:, 0]
        )

    @property
    def falls(self) -> bool:
        """Whether the density falls with every concept in which the signatures differ.

        False where fewer than two distances have pairs, so that nothing can fall.
        """
        values = self.by_distance[~np.isnan(self.by_distance)]
        return len(values) > 1 and bool((np.diff(values) < 0).all())


def signature_lift(
    support: Support | sparse.sparray,
    basis: ConceptBasis,
    dims: int | Sequence[int] = 5,
    *,
    n_permutations: int = 100,
    n_rotations: int = 100,
    random_state: int = 0,
) -> SignatureLift:
    """Return how much denser the support is between words and contexts of the same signature.

    Parameters
    ----------
    support
        What the basis was made from, or the support of other text over the same words and contexts.
    basis
        With context analyzer vectors.
    dims
        As in :func:`orthants`, at most 12.
    n_permutations, n_rotations
        Numbers of draws.
    random_state
        Seed of both.

    Raises
    ------
    ArgumentError
        If the basis has no context analyzer vectors or does not fit the support.

    Notes
    -----
    A number for Fig. 6 of Zhao and Thrampoulidis (2025). Frequent words follow many contexts, and
    concept 1 is mostly frequency: part of the lift is that.

    Examples
    --------
    >>> from ontogeny import semantics
    >>> support = semantics.support_matrix(
    ...     "to go to see to go a cat a dog a cat", lengths=1
    ... )
    >>> lift = signature_lift(support, semantics.svd_concepts(support, 1), dims=1)
    >>> lift.by_distance.shape
    (2,)
    """
    picked = checked_dims(basis, dims)
    if len(picked) > MOST_DIMS:
        raise ArgumentError(
            f"dims must name at most {MOST_DIMS} concepts; got {len(picked)}."
        )
    if basis.V is None:
        raise ArgumentError("basis must have context analyzer vectors; it has none.")
    S = sparse.csr_array(values_of(support, "S")[0])
    if S.shape != (len(basis.U), len(basis.V)):
        raise ArgumentError(
            f"support must have the shape of the basis, {(len(basis.U), len(basis.V))}; "
            f"got {S.shape}."
        )
    S = sparse.csr_array(S != 0, dtype=float)
    if not S.nnz:
        raise ArgumentError(
            "support must hold a word that follows a context; all are 0."
        )
    check_whole("n_permutations", n_permutations, 0)
    check_whole("n_rotations", n_rotations, 0)
    check_whole("random_state", random_state, 0)
    U = basis.U[:, picked]
    V = basis.V[:, picked]
    p = len(picked)
    rng = np.random.default_rng(random_state)
    words = signatures(U)
    contexts = signatures(V)
    permuted = [
        _densities(S, rng.permutation(words), contexts, p)
        for _ in range(n_permutations)
    ]
    rotated = []
    for _ in range(n_rotations):
        R = random_rotation(p, rng)
        rotated.append(_densities(S, signatures(U @ R), signatures(V @ R), p))
    return SignatureLift(
        _densities(S, words, contexts, p),
        np.reshape(permuted, (n_permutations, p + 1)),
        np.reshape(rotated, (n_rotations, p + 1)),
    )


def _densities(
    S: sparse.csr_array, words: np.ndarray, contexts: np.ndarray, p: int
) -> np.ndarray:
    """Return the relative density of the support at each Hamming distance of signatures."""
    members = sparse.csr_array(
        (np.ones(len(words)), (words, np.arange(len(words)))), (2**p, len(words))
    )
    theirs = sparse.csr_array(
        (np.ones(len(contexts)), (np.arange(len(contexts)), contexts)),
        (len(contexts), 2**p),
    )
    hits = (members @ S @ theirs).toarray()
    pairs = np.outer(
        np.bincount(words, minlength=2**p), np.bincount(contexts, minlength=2**p)
    )
    codes = np.arange(2**p)
    apart = np.bitwise_count(codes[:, None] ^ codes)
    inside = np.bincount(apart.ravel(), hits.ravel(), minlength=p + 1)
    of = np.bincount(apart.ravel(), pairs.ravel().astype(float), minlength=p + 1)
    density = S.nnz / (S.shape[0] * S.shape[1])
    return np.divide(inside, of * density, out=np.full(p + 1, np.nan), where=of > 0)
