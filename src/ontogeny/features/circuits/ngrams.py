"""n-gram models of texts, with their whole distributions over the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ...capture.predicted import next_tokens
from ...errors import ArgumentError, check_whole
from ...inputs import Inputs
from ...observables.word_frequencies import contexts, numbered, smoothed

LARGEST_ORDER = 4  # contexts of three tokens fit into 64 bits


@dataclass(frozen=True, eq=False)
class NGrams:
    """Interpolated n-gram models of some texts, for n = 1 to `order`.

    The probability of a token after n - 1 others is its count there plus β times its probability
    after n - 2 of them, over their count plus β (a Dirichlet prior: MacKay & Peto 1995, eq. 10).
    The frequencies for n = 1 are counts plus α, over their number plus α times the vocabulary.

    Parameters
    ----------
    vocabulary
        Number V of tokens that have a probability.
    smoothing
        (order,) α and the β of each n: those under which each text costs least by the counts of
        all other texts.
    tables
        The counts.
    texts
        The texts that were counted.
    """

    vocabulary: int
    smoothing: np.ndarray
    tables: tuple[_Counts, ...]
    texts: Inputs

    @classmethod
    def of(cls, texts: Inputs, vocabulary: int, order: int = 3) -> NGrams:
        """Count the n-grams of texts.

        Parameters
        ----------
        texts
            The texts; special tokens are context but are not predicted.
        vocabulary
            V, above every token id.
        order
            The largest n, at most 4.

        Raises
        ------
        ArgumentError
            If an id is too large, or fewer than two texts are independent, so that the smoothing
            cannot be chosen.

        Examples
        --------
        >>> models = NGrams.of(Inputs.from_tokens([[1, 2] * 9, [2, 1] * 8]), 4, order=2)
        >>> text, column = np.array([0]), np.array([1])
        >>> models.distributions(models.texts, text, column)[1].argmax(axis=1)
        array([2])
        """
        check_whole("order", order, 1, LARGEST_ORDER)
        if int(texts.ids.max()) >= vocabulary:
            raise ArgumentError(
                f"vocabulary must be above every token id, {texts.ids.max()}; got {vocabulary}."
            )
        if not texts.has_several_units:
            raise ArgumentError(
                "n-grams need at least two texts that are independent: their smoothing is chosen "
                "by what each costs under the counts of the others."
            )
        text, column = np.nonzero(next_tokens(texts))
        smoothings = smoothed(texts, text, column, vocabulary, order)
        scored, place = np.nonzero(texts.scored)
        tables = [_Counts.of(texts, scored, place, 0, vocabulary)]
        tables += [
            _Counts.of(texts, text, column, n, vocabulary) for n in range(1, order)
        ]
        return cls(
            vocabulary,
            np.array([table for _, table in smoothings]),
            tuple(tables),
            texts,
        )

    def distributions(
        self, inputs: Inputs, text: np.ndarray, column: np.ndarray
    ) -> list[np.ndarray]:
        """Return what each n-gram model gives at tokens (text, column), by n: (e, V) float64.

        Where `inputs` are the texts that were counted, each token's own text is left out of the
        counts, and so are copies of it and the rest of its document.

        Examples
        --------
        >>> models = NGrams.of(Inputs.from_tokens([[1, 2, 1], [2, 1, 2]]), 4, order=3)
        >>> distributions = models.distributions(
        ...     models.texts, np.array([0, 1]), np.array([2, 2])
        ... )
        >>> bool(np.allclose([shares.sum(axis=1) for shares in distributions], 1))
        True
        """
        groups = (
            inputs.groups[text]
            if inputs.fingerprint == self.texts.fingerprint
            else None
        )
        distributions: list[np.ndarray] = []
        for n, (table, strength) in enumerate(
            zip(self.tables, self.smoothing, strict=True)
        ):
            counts = table.after(contexts(inputs, text, column, n), groups)
            prior = distributions[-1] if distributions else np.ones(self.vocabulary)
            smooth = counts + strength * prior
            distributions.append(smooth / smooth.sum(axis=1, keepdims=True))
        return distributions


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often tokens follow contexts of one length, within each unit and over all of them.

    A row of `counts` belongs to a unit and a context, see `places`; unit -1 is all texts together,
    and the last row, which is empty, is that of contexts that do not occur.
    """

    places: dict[tuple[int, int], int]
    counts: sparse.csr_array

    @classmethod
    def of(
        cls,
        texts: Inputs,
        text: np.ndarray,
        column: np.ndarray,
        length: int,
        vocabulary: int,
    ) -> _Counts:
        context = contexts(texts, text, column, length)
        there = context >= 0
        unit = np.append(np.full(there.sum(), -1), texts.groups[text][there])
        context = np.tile(context[there], 2)
        token = np.tile(texts.ids[text, column][there], 2)
        # numbered() takes no negative second number.
        pair = numbered(context, unit + 1)
        _, first, row = np.unique(pair, return_index=True, return_inverse=True)
        pairs = zip(unit[first].tolist(), context[first].tolist(), strict=True)
        places = {pair: place for place, pair in enumerate(pairs)}
        shape = (len(places) + 1, vocabulary)
        return cls(
            places, sparse.coo_array((np.ones(len(row)), (row, token)), shape).tocsr()
        )

    def after(self, context: np.ndarray, text: np.ndarray | None) -> np.ndarray:
        """Return the counts (e, V) after each context, without those of the units `own`."""
        counts = self._rows(np.full(len(context), -1), context)
        return (
            counts if text is None else counts - self._rows(text, context)
        ).toarray()

    def _rows(self, unit: np.ndarray, context: np.ndarray) -> sparse.csr_array:
        pairs = zip(unit.tolist(), context.tolist(), strict=True)
        return self.counts[[self.places.get(pair, len(self.places)) for pair in pairs]]
