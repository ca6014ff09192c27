"""The corpus side of `WordSemantics`: concepts of the support matrix, and those of its null."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import sparse

from ontogeny.errors import check_type, check_whole
from ontogeny.features.wordspace.cloze import Cloze
from ontogeny.features.wordspace.concepts import ConceptBasis, svd_concepts
from ontogeny.features.wordspace.support import ContextWords, Support

MATRICES: dict[str, dict[str, Any]] = {
    "S": {"of": "S"},
    "P": {"of": "P"},
    "S diag(π)": {"of": "S", "weights": "pi"},
    "P diag(π)": {"of": "P", "weights": "pi"},
}


def shuffled_next_words(support: Support, random_state: int = 0) -> Support:
    """Return the support of the same corpus with its counted next words in random order.

    Every word and every context is counted exactly as often as before; what follows what is
    chance. What remains is what word and context frequencies alone give.

    Parameters
    ----------
    support
        Of a corpus.
    random_state
        Seed of the order.

    Examples
    --------
    >>> from ontogeny import semantics
    >>> support = semantics.support_matrix("a b a c a b b a c c a", lengths=1)
    >>> shuffled = shuffled_next_words(support)
    >>> [bool((shuffled.counts.sum(i) == support.counts.sum(i)).all()) for i in (0, 1)]
    [True, True]
    """
    check_type("support", support, Support)
    check_whole("random_state", random_state, 0)
    counted = support.counts.tocoo()
    words = np.repeat(counted.row, counted.data)
    contexts = np.repeat(counted.col, counted.data)
    np.random.default_rng(random_state).shuffle(words)
    ones = np.ones(len(words), dtype=support.counts.dtype)
    counts = sparse.coo_array((ones, (words, contexts)), shape=support.shape).tocsr()
    counts.sort_indices()
    return Support(counts, support.words, support.contexts, support.word_ids)


def support_state(
    corpus: Cloze, n_concepts: int, n_draws: int, random_state: int
) -> xr.Dataset:
    """Return what is compared with every checkpoint, as one dataset.

    ``U``, ``V``, ``sigma`` of every matrix in `MATRICES` and ``null_U``, ``null_V``,
    ``null_sigma`` of the same corpus with shuffled next words (``draw``); ``word_id``,
    ``context_id``, ``left``, ``label`` of every concept.
    """
    support = corpus.support
    real = bases_of(support, n_concepts)
    seeds = np.random.default_rng(random_state).integers(0, 2**32, n_draws).tolist()
    null = [bases_of(shuffled_next_words(support, seed), n_concepts) for seed in seeds]
    k = min(basis.k for bases in (real, *null) for basis in bases.values())
    contexts = support.contexts
    assert isinstance(contexts, ContextWords)  # both makers number contexts by words
    word_ids = np.asarray(support.word_ids, dtype=np.int64)
    data = xr.Dataset(
        {
            **_variables(real, k),
            "word_id": ("word", word_ids),
            "context_id": (
                ("context", "place"),
                np.where(contexts.ids < 0, -1, word_ids[contexts.ids]),
            ),
            "left": ("context", np.asarray(corpus.left, dtype=np.int64)),
            "label": (("matrix", "concept"), [_labels(b, k) for b in real.values()]),
        },
        coords={"matrix": list(MATRICES), "concept": np.arange(1, k + 1)},
    )
    pieces = [xr.Dataset(_variables(bases, k)) for bases in null]
    draws = xr.concat(pieces, dim="draw").rename(
        {"U": "null_U", "V": "null_V", "sigma": "null_sigma"}
    )
    return data.merge(draws)


def bases_of(support: Support, n_concepts: int) -> dict[str, ConceptBasis]:
    """Return the concepts of S̃, centred P, and both weighted by the contexts' frequencies.

    Examples
    --------
    >>> from ontogeny.semantics import support_matrix
    >>> bases = bases_of(support_matrix("a b a c a b b a c c a", lengths=1), 2)
    >>> {name: basis.U.shape for name, basis in bases.items()}["P diag(π)"]
    (3, 2)
    """
    return {
        name: svd_concepts(support, n_concepts, **how) for name, how in MATRICES.items()
    }


def _variables(bases: dict[str, ConceptBasis], k: int) -> dict[str, Any]:
    """Return the first `k` concepts of all matrices; singular vectors in float32."""
    columns = bases.values()
    return {
        "U": (
            ("matrix", "word", "concept"),
            np.stack([b.U[:, :k] for b in columns]).astype("f4"),
        ),
        "V": (
            ("matrix", "context", "concept"),
            np.stack([_right(b, k) for b in columns]),
        ),
        "sigma": (("matrix", "concept"), np.stack([b.sigma[:k] for b in columns])),
    }


def _right(basis: ConceptBasis, k: int) -> np.ndarray:
    assert basis.V is not None  # a support has contexts
    return basis.V[:, :k].astype(np.float32)


def _labels(basis: ConceptBasis, k: int) -> list[str]:
    """Return the three most typical words at both ends of every concept."""
    words = basis.words
    assert words is not None
    labels = []
    for u in basis.U[:, :k].T:
        order = np.argsort(-u, kind="stable")
        high = order[:3]
        low = order[::-1][:3]
        ends = [
            " ".join(words[i].strip() or repr(words[i]) for i in end)
            for end in (high, low)
        ]
        labels.append(f"{ends[0]} / {ends[1]}")
    return labels
