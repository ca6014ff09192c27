"""n-gram models of texts, with their whole distributions over the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
        if len(np.unique(texts.groups[texts.ordinary.any(axis=1)])) < 2:
            raise ArgumentError(
                "n-grams need at least two texts that are independent: their smoothing is chosen "
                "by what each costs under the counts of the others."
            )
        text, column = np.nonzero(next_tokens(texts))
        found = smoothed(texts, text, column, vocabulary, order)
        every = np.nonzero(texts.ordinary)
        tables = [_Counts.of(texts, every[0], every[1], 0)]
        tables += [_Counts.of(texts, text, column, n) for n in range(1, order)]
        return cls(vocabulary, np.array([each for _, each in found]), tuple(tables), texts)

    def distributions(
        self, inputs: Inputs, text: np.ndarray, column: np.ndarray
    ) -> list[np.ndarray]:
        """Return what each n-gram model gives at tokens (text, column), by n: (e, V) float64.

        Where `inputs` are the texts that were counted, each token's own text is left out of the
        counts, and so are copies of it and the rest of its document.

        Examples
        --------
        >>> models = NGrams.of(Inputs.from_tokens([[1, 2, 1], [2, 1, 2]]), 4, order=3)
        >>> found = models.distributions(models.texts, np.array([0, 1]), np.array([2, 2]))
        >>> bool(np.allclose([each.sum(axis=1) for each in found], 1))
        True
        """
        own = inputs.groups[text] if inputs.fingerprint == self.texts.fingerprint else None
        found: list[np.ndarray] = []
        for n, (table, strength) in enumerate(zip(self.tables, self.smoothing, strict=True)):
            counts = table.after(contexts(inputs, text, column, n), own, self.vocabulary)
            prior = found[-1] if found else np.ones(self.vocabulary)
            smooth = counts + strength * prior
            found.append(smooth / smooth.sum(axis=1, keepdims=True))
        return found


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often tokens follow contexts of one length, over all texts and within each unit."""

    total: _Table
    own: _Table

    @classmethod
    def of(cls, texts: Inputs, text: np.ndarray, column: np.ndarray, length: int) -> _Counts:
        context, token = contexts(texts, text, column, length), texts.ids[text, column]
        there = context >= 0
        unit = texts.groups[text]
        whole = np.zeros(len(token), dtype=np.int64)
        return cls(
            _Table.of(whole[there], context[there], token[there]),
            _Table.of(unit[there], context[there], token[there]),
        )

    def after(self, context: np.ndarray, own: np.ndarray | None, vocabulary: int) -> np.ndarray:
        """Return the counts (e, V) after each context, without those of the units `own`."""
        found = np.zeros((len(context), vocabulary))
        for table, unit, sign in (
            (self.total, np.zeros(len(context), dtype=np.int64), 1.0),
            (self.own, own, -1.0),
        ):
            if unit is not None:
                row, token, count = table.rows(unit, context)
                found[row, token] += sign * count
        return found


@dataclass(frozen=True, eq=False)
class _Table:
    """Counts of tokens by unit and context, those of one context together."""

    places: dict[tuple[int, int], int]
    start: np.ndarray
    length: np.ndarray
    tokens: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, unit: np.ndarray, context: np.ndarray, token: np.ndarray) -> _Table:
        of_token = np.unique(numbered(context, unit), return_inverse=True)[1]
        _, first, counts = np.unique(
            numbered(of_token, token), return_index=True, return_counts=True
        )
        _, start, length = np.unique(of_token[first], return_index=True, return_counts=True)
        pairs = zip(unit[first[start]].tolist(), context[first[start]].tolist(), strict=True)
        places = {pair: place for place, pair in enumerate(pairs)}
        return cls(places, start, length, token[first], counts)

    def rows(
        self, unit: np.ndarray, context: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what is counted after each (unit, context): its row, the token, the count."""
        place = np.array(
            [self.places.get(key, -1) for key in zip(unit.tolist(), context.tolist(), strict=True)],
            dtype=np.int64,
        )
        known = np.flatnonzero(place >= 0)
        length = self.length[place[known]]
        row = np.repeat(known, length)
        within = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
        at = np.repeat(self.start[place[known]], length) + within
        return row, self.tokens[at], self.counts[at]
