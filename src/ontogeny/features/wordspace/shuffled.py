"""The null of the support matrix: the same words and contexts, but any word after any context."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ...errors import check_type, check_whole
from .support import Support


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
