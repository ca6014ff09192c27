"""A corpus whose texts are drawn again with replacement: how sure its counts are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ontogeny.features.wordspace.counting import matched_positions, relabelled
from ontogeny.features.wordspace.support import ContextWords, Support, WordStream

FEWEST_TEXTS = 20
BLOCK = 200  # words of a unit where there are fewer texts


@dataclass(frozen=True, eq=False)
class ResampledCorpus:
    """The counts of a support matrix, unit by unit.

    Parameters
    ----------
    support
        Of the whole corpus.
    of_unit
        Sparse (pairs, units): how often each pair of a word and a context, in the order of
        ``support.counts.data``, stands in each unit.
    unit
        ``"texts"``, or ``"blocks of 200 words"`` where the corpus has fewer than 20 texts.
    """

    support: Support
    of_unit: sparse.csr_array
    unit: str

    @classmethod
    def of(cls, stream: WordStream, support: Support) -> ResampledCorpus:
        """Find the units of a stream in which each counted word stands.

        Parameters
        ----------
        stream
            The words that were counted.
        support
            What `support_matrix` counted in them.
        """
        V, m = support.shape
        ids = relabelled(stream.ids, support.word_ids)
        text = np.cumsum(np.asarray(stream.ids) < 0)
        few = len(np.unique(text[ids >= 0])) < FEWEST_TEXTS
        place = np.arange(len(ids)) // BLOCK if few else text
        assert isinstance(support.contexts, ContextWords)  # counted in a stream
        matches = list(matched_positions(ids, support.contexts.ids, V))
        positions, columns = (
            np.concatenate(arrays) for arrays in zip(*matches, strict=True)
        )
        unit = np.unique(place[positions], return_inverse=True)[1]
        counted = support.counts.tocoo()
        keys = counted.row.astype(np.int64) * m + counted.col
        pair = np.searchsorted(keys, ids[positions].astype(np.int64) * m + columns)
        shape = (support.counts.nnz, int(unit.max()) + 1)
        of_unit = sparse.coo_array(
            (np.ones(len(unit)), (pair, unit)), shape=shape
        ).tocsr()
        return cls(support, of_unit, f"blocks of {BLOCK} words" if few else "texts")

    @property
    def count(self) -> int:
        """Number of units."""
        return self.of_unit.shape[1]

    def draw(self, rng: np.random.Generator) -> Support:
        """Return the support of as many units, drawn with replacement; same words and contexts.

        Examples
        --------
        >>> from ontogeny import semantics
        >>> stream = semantics.word_stream(["a b a c", "b c a b"] * 10)
        >>> support = semantics.support_matrix(stream, lengths=1)
        >>> sample = ResampledCorpus.of(stream, support).draw(np.random.default_rng(0))
        >>> sample.shape, int(sample.counts.sum())
        ((3, 3), 60)
        """
        times = rng.multinomial(self.count, np.full(self.count, 1 / self.count))
        whole = self.support.counts
        data = (self.of_unit @ times).round().astype(whole.dtype)
        counts = sparse.csr_array(
            (data, whole.indices, whole.indptr), shape=whole.shape, copy=True
        )
        counts.eliminate_zeros()
        return Support(
            counts, self.support.words, self.support.contexts, self.support.word_ids
        )
