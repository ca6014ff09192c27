"""Concepts of word embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ontogeny.arrays import Array, numpy_matrix
from ontogeny.errors import ArgumentError, check_flag, check_iterable, check_whole
from ontogeny.features.wordspace.centred_svd import column_signs
from ontogeny.features.wordspace.concepts import ConceptBasis


def embedding_concepts(
    W: Array,
    H: Array | None = None,
    k: int = 20,
    *,
    centred: bool = True,
    words: Sequence[str] | None = None,
    contexts: Sequence[tuple[str, ...]] | None = None,
) -> ConceptBasis:
    """Return the concepts that a model's own embeddings hold, without a support matrix.

    W = U Sigma^1/2 R^T gives U and Sigma; the contexts follow by V = H^T R Sigma^-1/2.

    Parameters
    ----------
    W
        Word embeddings of shape (V, d): decoder or input embedding, rows beyond the tokenizer
        left out.
    H
        Context embeddings of shape (d, m), of the same model. The columns of V are then not
        orthonormal: H is not what the formula assumes, and shows how far the model is from it.
    k
        Number of concepts; fewer come back if the rank is lower.
    centred
        Whether the mean word embedding is subtracted, as the theory's S~ is centred. Uncentred,
        the first axis is mostly the mean.
    words, contexts
        Their names.

    Raises
    ------
    ArgumentError
        If the shapes do not fit or W has no variance.

    Notes
    -----
    Zhao and Thrampoulidis (2025), sec. 5.1 and App. F.2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, H = rng.normal(size=(30, 4)), rng.normal(size=(4, 50))
    >>> basis = embedding_concepts(W, H, k=3)
    >>> basis.U.shape, basis.V.shape
    ((30, 3), (50, 3))
    """
    check_whole("k", k)
    check_flag("centred", centred)
    vectors = numpy_matrix("W", W)
    _check_names("words", words, len(vectors), "rows of W")
    if centred:
        vectors = vectors - vectors.mean(0)
    U, roots, Rt = np.linalg.svd(vectors, full_matrices=False)
    rank = int((roots > 1e-10 * max(np.abs(vectors).max(), roots[0])).sum())
    if rank == 0:
        raise ArgumentError(
            "W has the same embedding in every row; it holds no concept."
        )
    k = min(k, rank)
    signs = column_signs(U[:, :k])
    U = U[:, :k] * signs
    R = Rt[:k].T * signs
    V = None
    if H is not None:
        hidden = numpy_matrix("H", H)
        if len(hidden) != len(R):
            raise ArgumentError(
                f"H must have {len(R)} rows, the columns of W; its shape is {hidden.shape}."
            )
        _check_names("contexts", contexts, hidden.shape[1], "columns of H")
        V = hidden.T @ (R / roots[:k])  # roots are the singular values of W: Sigma^1/2
    source = f"word embeddings, {'centred' if centred else 'not centred'}"
    return ConceptBasis(U, roots[:k] ** 2, V, words, contexts, source)


def _check_names(name: str, names: Sequence[Any] | None, n: int, of: str) -> None:
    if names is None:
        return
    count = len(list(check_iterable(name, names, f"names of the {of}")))
    if count != n:
        raise ArgumentError(f"{name} must name the {n} {of}; got {count} names.")
