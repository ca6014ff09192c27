"""Which words stand next to a word in held-out text: coherence without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ontogeny.errors import ArgumentError, check_texts, check_whole

from .corpus import Tokens, token_stream

# Words of a group that are compared: its most typical ones.
TOP = 15


@dataclass(frozen=True, eq=False)
class NeighbourVectors:
    """Unit vectors of the neighbours of words.

    Parameters
    ----------
    vectors
        Sparse, shape (words, features); a row of zeros for a word that does not occur.
    words
        Their names.

    Examples
    --------
    >>> near = neighbour_vectors(
    ...     "in may in june the cat", ["may", "june", "cat"], window=1
    ... )
    >>> (near.vectors @ near.vectors.T).toarray().round(1)
    array([[1. , 0.1, 0. ],
           [0.1, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    vectors: sparse.csr_array
    words: tuple[str, ...]

    def of(self, words: Sequence[str]) -> sparse.csr_array:
        """Return the rows of `words`, zeros where a word is not known.

        Raises
        ------
        ArgumentError
            If none of them is known.
        """
        index = {word: i for i, word in enumerate(self.words)}
        rows = np.array([index.get(word, -1) for word in words])
        if (rows < 0).all():
            raise ArgumentError(
                "neighbours: none of the words is among those it was made for."
            )
        picked = self.vectors[np.maximum(rows, 0)]
        return sparse.csr_array(sparse.diags_array((rows >= 0).astype(float)) @ picked)


def neighbour_vectors(
    heldout: Tokens, words: Sequence[str], *, window: int = 2
) -> NeighbourVectors:
    """Return what stands beside each word in held-out text, as unit vectors.

    A feature is a word at an offset of 1 to `window` to the left or right; its weight is the
    positive pointwise mutual information with the word.

    Parameters
    ----------
    heldout
        Text that the concepts were not made from, as in :func:`support_matrix`; split as theirs.
    words
        The words to describe.
    window
        How far neighbours may stand.

    Raises
    ------
    ArgumentError
        If none of the words occurs with a neighbour.

    Notes
    -----
    A control that needs no labels: words of one class have the same neighbours (months the same
    prepositions), while topic scores such as NPMI ask whether they stand together, which months do
    not.

    Examples
    --------
    >>> neighbour_vectors(
    ...     "in may . in june . the cat", ["may", "june", "cat"]
    ... ).vectors.shape
    (3, 24)
    """
    check_whole("window", window)
    words = check_texts("words", words, "words")
    stream = token_stream(heldout)
    index = {word: i for i, word in enumerate(words)}
    rows_of = np.array(
        [index.get(word, -1) for word in stream.words] + [-1], dtype=np.int64
    )
    ids = np.maximum(stream.ids.astype(np.int64), -1)
    rows = rows_of[ids]
    V = len(stream.words)
    blocks = []
    for offset in [o for o in range(-window, window + 1) if o]:
        at = np.flatnonzero(rows >= 0)
        at = at[(at + offset >= 0) & (at + offset < len(ids))]
        at = at[ids[at + offset] >= 0]
        entries = (np.ones(len(at)), (rows[at], ids[at + offset]))
        blocks.append(sparse.coo_array(entries, shape=(len(words), V)).tocsr())
    counts = sparse.csr_array(sparse.hstack(blocks))
    if not counts.nnz:
        raise ArgumentError(
            "heldout: none of the words stands beside another word there."
        )
    return NeighbourVectors(_unit(_positive_pmi(counts)), tuple(words))


def mean_similarity(
    vectors: sparse.csr_array, codes: np.ndarray, typicality: np.ndarray, top: int = TOP
) -> float:
    """Return the mean cosine between the `top` most typical words of a group, over all groups.

    Words without a vector are passed over; groups with fewer than two others do not count. NaN if
    none is left.

    Examples
    --------
    >>> vectors = sparse.csr_array(np.array([[1.0, 0], [1, 0], [0, 1]]))
    >>> mean_similarity(vectors, np.array([0, 0, 0]), np.array([3.0, 2, 1]), top=2)
    1.0
    """
    rows = np.flatnonzero(np.diff(vectors.indptr) > 0)
    order = rows[np.lexsort((-typicality[rows], codes[rows]))]
    _, starts, inverse = np.unique(codes[order], return_index=True, return_inverse=True)
    first = np.arange(len(order)) - starts[inverse] < top
    order = order[first]
    group = inverse[first]
    sizes = np.bincount(group)
    members = sparse.csr_array(
        (np.ones(len(order)), (group, order)), (len(sizes), len(codes))
    )
    sums = (members @ vectors).power(2).sum(1)
    pairs = sizes > 1
    if not pairs.any():
        return np.nan
    return float(
        np.mean((sums[pairs] - sizes[pairs]) / (sizes[pairs] * (sizes[pairs] - 1)))
    )


def _positive_pmi(counts: sparse.csr_array) -> sparse.csr_array:
    rows, columns = counts.nonzero()
    expected = counts.sum(1)[rows] * counts.sum(0)[columns] / counts.sum()
    counts.sum_duplicates()
    weights = np.maximum(np.log(counts[rows, columns] / expected), 0.0)
    pmi = sparse.csr_array((weights, (rows, columns)), shape=counts.shape)
    pmi.eliminate_zeros()
    return pmi


def _unit(vectors: sparse.csr_array) -> sparse.csr_array:
    norms = np.sqrt(vectors.power(2).sum(1))
    return sparse.csr_array(
        sparse.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ vectors
    )
