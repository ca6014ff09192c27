"""Concepts: the singular vectors of the centred support matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ...arrays import Array, check_finite, is_array, matrix, numpy_matrix, to_numpy
from ...errors import ArgumentError, NonFiniteError, check_choice, check_whole
from .centred_svd import METHODS, centred_svd
from .support import Support

MOST_DIMS = 62  # signs of a row are numbered in 64 bits

# Singular values this close, of the larger one, are equal but for rounding.
EQUAL = 1e-6

_SOURCES = {"S": "support matrix", "P": "matrix of conditional probabilities"}


@dataclass(frozen=True, eq=False)
class ConceptBasis:
    """Concepts: word analyzer vectors U, singular values, context analyzer vectors V.

    Parameters
    ----------
    U
        Word analyzer vectors, columns of shape (V, k).
    sigma
        Singular values, largest first, shape (k,).
    V
        Context analyzer vectors, columns of shape (m, k); None where there are no contexts.
    words, contexts
        Their names; None if unknown.
    source
        What the vectors were taken from, and whether it was centred.

    Examples
    --------
    >>> from ontogeny.features.wordspace.support import WordStream, support_of
    >>> stream = WordStream(np.array([0, 1, 0, 2, 0, 1, 1]), ("a", "b", "c"))
    >>> basis = svd_concepts(support_of(stream, lengths=1), k=2)
    >>> basis.U.shape, basis.V.shape
    ((3, 2), (3, 2))
    """

    U: np.ndarray
    sigma: np.ndarray
    V: np.ndarray | None
    words: Sequence[str] | None = None
    contexts: Sequence[tuple[str, ...]] | None = None
    source: str = ""

    @property
    def k(self) -> int:
        """Number of concepts."""
        return self.U.shape[1]

    @property
    def planes(self) -> list[list[int]]:
        """Concepts of equal singular values: any directions of such a plane would do.

        Which of them come back depends on the order of rows and columns, and with it the signs of
        words in them, and the orthants.

        Examples
        --------
        >>> ConceptBasis(np.eye(4), np.array([3.0, 2.0, 2.0, 1.0]), None).planes
        [[1, 2]]
        """
        alone = np.flatnonzero(-np.diff(self.sigma) > EQUAL * self.sigma[:-1]) + 1
        groups = np.split(np.arange(self.k), alone)
        return [group.tolist() for group in groups if len(group) > 1]

    def representations(self, W: Array, H: Array | None = None) -> tuple[Any, Any]:
        """Return the concepts in the embedding space: W^T u_k and H v_k.

        Parameters
        ----------
        W
            Word embeddings of shape (V, d).
        H
            Context embeddings of shape (d, m).

        Returns
        -------
        tuple of arrays of shape (d, k)
            The second is None without H.

        Raises
        ------
        ArgumentError
            If the shapes do not fit.

        Notes
        -----
        Zhao and Thrampoulidis (2025), sec. 4.2 and App. B. For W = U Sigma^1/2 R^T and
        H = R Sigma^1/2 V^T both are sigma_k^1/2 R e_k (the paper prints sigma_k R e_k).

        Examples
        --------
        >>> basis = ConceptBasis(np.eye(3)[:, :2], np.ones(2), None)
        >>> basis.representations(np.arange(6.0).reshape(3, 2))[0]
        array([[0., 2.],
               [1., 3.]])
        """
        words = to_numpy(matrix("W", W))
        if len(words) != len(self.U):
            raise ArgumentError(
                f"W must have {len(self.U)} rows, one a word; got {len(words)}."
            )
        if H is None:
            return words.T @ self.U, None
        contexts = to_numpy(matrix("H", H))
        if self.V is None:
            raise ArgumentError(
                "H was given, but this basis has no context analyzer vectors."
            )
        if contexts.shape[1] != len(self.V):
            raise ArgumentError(
                f"H must have {len(self.V)} columns, one a context; got {contexts.shape[1]}."
            )
        return words.T @ self.U, contexts @ self.V


def svd_concepts(
    support: Support | Array | sparse.sparray,
    k: int = 20,
    *,
    of: str = "S",
    weights: str | Array | None = None,
    method: str = "auto",
    random_state: int = 0,
) -> ConceptBasis:
    """Return the leading singular triplets of a matrix whose columns are centred.

    Centring is implicit: a sparse matrix stays sparse. The largest entry of each u_k is positive
    (the first of equal ones), and v_k follows.

    Parameters
    ----------
    support
        A :class:`Support`, or any matrix of shape (V, m), dense or sparse.
    k
        Number of concepts; fewer come back if the rank is lower.
    of
        ``"S"``, the support, or ``"P"``, the conditional probabilities, where a Support is given.
    weights
        Weights of the contexts, shape (m,), by which the columns are multiplied; ``"pi"`` takes
        the share of each context in the text.
    method
        ``"dense"`` (SVD of the dense matrix), ``"gram"`` (eigenvectors of the smaller Gram
        matrix) or ``"lanczos"`` (never dense); ``"auto"`` chooses by size.
    random_state
        Seed of the Lanczos start vector.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or every context allows every word, so that nothing is
        left after centring.
    NonFiniteError
        If the matrix holds NaN or infinity.

    Notes
    -----
    Zhao and Thrampoulidis (2025), Eq. (2) and (3): S~ = (I - 11^T / V) S = U Sigma V^T. A single
    axis rarely means anything by itself; concept 1 is mostly word frequency. Singular vectors of
    equal singular values are determined only up to rotation among each other (`planes`).

    Examples
    --------
    >>> basis = svd_concepts(np.array([[1.0, 0, 1], [0, 1, 1], [0, 0, 1]]), k=2)
    >>> basis.sigma.round(3)
    array([1.   , 0.577])
    """
    A, words, contexts = values_of(support, of)
    if weights is not None:
        A = A @ sparse.diags_array(_weights(weights, support, A.shape[1]))
    check_whole("k", k)
    check_choice("method", method, METHODS)
    U, sigma, V = centred_svd(A, k, method, random_state)
    if not len(sigma):
        raise ArgumentError(
            f"the centred matrix {A.shape} is zero: every context allows every word, so no concept "
            "tells words apart. Give more text, more words or longer contexts."
        )
    source = f"centred {_SOURCES[of] if isinstance(support, Support) else 'matrix'}"
    source += "" if weights is None else ", contexts weighted"
    basis = ConceptBasis(U, sigma, V, words, contexts)
    for plane in basis.planes:
        source += (
            f", concepts {plane[0] + 1} to {plane[-1] + 1} in any basis of their space"
        )
    return replace(basis, source=source)


def values_of(support: Any, of: str) -> tuple[Any, Any, Any]:
    """Return the matrix of a support, or the matrix given in its place, and what it names."""
    if isinstance(support, Support):
        check_choice("of", of, ("S", "P"))
        return getattr(support, of), support.words, support.contexts
    if sparse.issparse(support):
        A = sparse.csr_array(support, dtype=np.float64)
        check_finite("support", A.data)
    else:
        A = numpy_matrix("support", support)
    if 0 in A.shape:
        raise ArgumentError(f"support must not be empty; its shape is {A.shape}.")
    return A, None, None


def _weights(weights: Any, support: Any, m: int) -> np.ndarray:
    if isinstance(weights, str):
        check_choice("weights", weights, ("pi",))
        if not isinstance(support, Support):
            raise ArgumentError(
                "weights='pi' needs a Support; give the weights of a matrix."
            )
        return support.pi
    values = numpy_matrix("weights", weights, ndim=1)
    if values.shape != (m,) or (values < 0).any():
        raise ArgumentError(
            f"weights must be {m} finite numbers of at least 0; got shape {values.shape}."
        )
    return values


def signatures(vectors: np.ndarray) -> np.ndarray:
    """Return one number for the signs of each row of `vectors` (n, p): bit i is set if negative.

    Zero counts as positive; a word with a zero is neutral.

    Raises
    ------
    ArgumentError
        If there are more than 62 columns.

    Examples
    --------
    >>> signatures(np.array([[0.5, -1.0], [-0.1, -2.0], [1.0, 1.0]])).tolist()
    [2, 3, 0]
    """
    if not is_array(vectors) or vectors.ndim != 2:
        kind = (
            f"shape {tuple(vectors.shape)}"
            if is_array(vectors)
            else type(vectors).__name__
        )
        raise ArgumentError(f"vectors must be an array of shape (n, p); got {kind}.")
    if not np.isfinite(vectors).all():
        raise NonFiniteError("vectors hold NaN or infinite values, which have no sign.")
    p = vectors.shape[1]
    if p > MOST_DIMS:
        raise ArgumentError(f"dims must name at most {MOST_DIMS} concepts; got {p}.")
    return (vectors < 0) @ (1 << np.arange(p, dtype=np.int64))
