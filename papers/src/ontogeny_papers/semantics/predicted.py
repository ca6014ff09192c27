"""In which order next-word concepts should be learned, from the corpus alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax
from scipy.stats import rankdata

from ontogeny.arrays import numpy_matrix
from ontogeny.errors import (
    ArgumentError,
    check_choice,
    check_flag,
    check_texts,
    check_whole,
)
from ontogeny.features.wordspace.centred_svd import GRAM_ROWS, Centred
from ontogeny.features.wordspace.concepts import ConceptBasis, svd_concepts
from ontogeny.features.wordspace.support import Support, WordStream

from .corpus import Tokens, token_stream, word_stream
from .resampled import ResampledCorpus
from .support_state import shuffled_next_words
from .supports import support_matrix

_DRIVERS = {"cross_entropy": "P", "square": "S"}


@dataclass(frozen=True, eq=False)
class PredictedOrder:
    """Concepts of a corpus in the order in which training should learn them.

    Made by `predicted_order`. Concepts are the singular triplets of the driver M, which is minus
    the derivative of the training loss by the logits where all logits are 0.

    Parameters
    ----------
    support
        Words, contexts, and how often they follow each other.
    basis
        Triplets u_k, σ_k, v_k of M, largest σ first.
    resampled
        (resamples, k): u_kᵀ M* v_k where M* is the driver of a corpus of resampled units, moved to
        have the mean σ_k.
    shuffled
        The concepts of corpora whose counted next words are in random order.
    loss
        ``"cross_entropy"`` or ``"square"``.
    shares
        Weight of each context in the loss (m,), summing to 1.
    units
        Number of units that were resampled, and ``unit`` what they are.
    """

    support: Support
    basis: ConceptBasis
    resampled: np.ndarray
    shuffled: Sequence[ConceptBasis]
    loss: str
    shares: np.ndarray
    units: int
    unit: str

    @property
    def rates(self) -> np.ndarray:
        """Growth rate of every concept from a small start (k,), in 1/time of the gradient flow."""
        return self.basis.sigma

    @cached_property
    def rate_interval(self) -> np.ndarray:
        """95 % interval of every rate over resampled units, (k, 2)."""
        return np.quantile(self.resampled, [0.025, 0.975], axis=0).T

    @cached_property
    def rank_interval(self) -> np.ndarray:
        """95 % interval of every concept's place in the order over resampled units, (k, 2)."""
        ranks = rankdata(-self.resampled, axis=1)
        return np.quantile(ranks, [0.025, 0.975], axis=0).T

    @cached_property
    def driver(self) -> Centred:
        """The driver M (V, m), its column means removed without forming it."""
        return _driver(self.support, self.loss, self.shares)

    def labels(self, words: int = 3) -> list[str]:
        """Return the most typical words at both ends of every concept.

        Examples
        --------
        >>> order = predicted_order(
        ...     "one two one four one two one six " * 9, 2, lengths=1
        ... )
        >>> order.labels(1)
        ['one / two', 'two / six']
        """
        check_whole("words", words)
        names = self.support.words
        labels = []
        for u in self.basis.U.T:
            ranked = np.argsort(-u, kind="stable")
            ends = (ranked[:words], ranked[::-1][:words])
            labels.append(" / ".join(" ".join(names[i] for i in end) for end in ends))
        return labels

    def of_words(self, words: Iterable[str]) -> ConceptBasis:
        """Return a set of words as a concept of its own: these words against all others.

        u is the set's indicator minus its mean, with norm 1; σ v = Mᵀ u.

        Parameters
        ----------
        words
            Some but not all of the support's words.

        Raises
        ------
        ArgumentError
            If a word is not in the support, all are given, or no context tells them from others.

        Examples
        --------
        >>> order = predicted_order("a b a c a b b a c c a", 2, lengths=1)
        >>> order.of_words(["b", "c"]).U[:, 0].round(2)
        array([-0.82,  0.41,  0.41])
        """
        texts = check_texts("words", words, "words")
        row = {word: i for i, word in enumerate(self.support.words)}
        unknown = [word for word in texts if word not in row]
        if unknown or not 0 < len(set(texts)) < len(row):
            raise ArgumentError(
                f"words must be some but not all of the {len(row)} words that were counted; "
                f"got {len(texts)}, of which {len(unknown)} are not among them {unknown[:5]}."
            )
        u = np.zeros((len(row), 1))
        u[[row[word] for word in texts]] = 1
        u = (u - u.mean()) / np.linalg.norm(u - u.mean())
        v = self.driver.transposed_times(u)
        sigma = np.linalg.norm(v, axis=0)
        if sigma[0] < 1e-12 * self.rates[0]:
            raise ArgumentError("words follow every context as often as all others do.")
        return ConceptBasis(
            u, sigma, v / sigma, self.support.words, self.support.contexts
        )

    def learned_share(
        self, logits: Any, basis: ConceptBasis | None = None
    ) -> np.ndarray:
        """Return how much of every concept a model has learned.

        The share is u_kᵀ O diag(shares) v_k / σ_k, where O is what the model puts out: its
        probabilities for the cross-entropy, the logits for the square loss. It is 0 where all
        words are alike and 1 where the model gives the corpus's own probabilities (its centred
        support, for the square loss). One minus the share is what is left of the gradient.

        Parameters
        ----------
        logits
            (V, m): of the support's words after each of its contexts.
        basis
            Other concepts to follow, such as those of `of_words`; by default the order's own.

        Returns
        -------
        numpy.ndarray
            (k,)

        Raises
        ------
        ArgumentError
            If the shape is wrong.

        Examples
        --------
        >>> order = predicted_order(
        ...     "one two one four one two one six " * 9, 2, lengths=1
        ... )
        >>> exact = np.log(order.support.P.toarray() + 1e-30)
        >>> (
        ...     order.learned_share(exact).round(3),
        ...     bool(abs(order.learned_share(0 * exact)).max() < 1e-9),
        ... )
        (array([1., 1.]), True)
        """
        return self._shares(
            self._output(logits), self.basis if basis is None else basis
        )

    def learned_shares(self, logits: Any) -> np.ndarray:
        """Return `learned_share` of the corpus's concepts and of each shuffled corpus's.

        Returns
        -------
        numpy.ndarray
            (1 + draws, k), the corpus itself first.
        """
        output = self._output(logits)
        return np.stack(
            [self._shares(output, basis) for basis in (self.basis, *self.shuffled)]
        )

    def _output(self, logits: Any) -> np.ndarray:
        values = numpy_matrix("logits", logits)
        if values.shape != self.support.shape:
            raise ArgumentError(
                f"logits must be (V, m) = {self.support.shape}, the support's words and contexts; "
                f"their shape is {values.shape}."
            )
        return softmax(values, axis=0) if self.loss == "cross_entropy" else values

    def _shares(self, output: np.ndarray, basis: ConceptBasis) -> np.ndarray:
        assert basis.V is not None  # made from a support
        along = np.sum(basis.U * (output @ (self.shares[:, None] * basis.V)), axis=0)
        return along / basis.sigma


def predicted_order(
    texts: Tokens,
    k: int = 20,
    *,
    loss: str = "cross_entropy",
    weighted: bool = True,
    vocab_size: int = 500,
    n_contexts: int = 2000,
    lengths: int | tuple[int, int] = (1, 2),
    names: Sequence[str] | None = None,
    resamples: int = 200,
    n_draws: int = 20,
    random_state: int = 0,
) -> PredictedOrder:
    """Predict from a corpus alone in which order its next-word concepts are learned.

    From a small start, gradient descent learns the singular directions of the driver M one after
    the other, at rates that are its singular values: centred P diag(π) for the cross-entropy and
    S̃ diag(π) for the square loss.

    Parameters
    ----------
    texts
        Several texts (a list of strings), or what `support_matrix` takes. Pass token ids, such as
        ``[row.tolist() for row in ids]``, to get concepts of a model's own tokens.
    k
        Concepts; fewer come back if the rank is lower.
    loss
        ``"cross_entropy"`` or ``"square"``: what the model is trained with.
    weighted
        Whether contexts count as often as they occur, as in training on running text. If not, all
        contexts count the same.
    vocab_size, n_contexts, lengths, names
        As for `support_matrix`.
    resamples
        Corpora of resampled texts, for the uncertainty. With fewer than 20 texts, blocks of 200
        words are resampled.
    n_draws
        Corpora with shuffled next words, for the null.
    random_state
        Seed of both.

    Returns
    -------
    PredictedOrder

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the texts hold too little.

    Notes
    -----
    Zhao and Thrampoulidis 2025, sec. 4.4 and Proposition 1, for the order. The context weights
    enter the gradient once, so that the driver is P diag(π). Weights ω² of a loss
    ‖(S̃ − W H) Ω‖² give the rates of S̃ Ω², and not of S̃ Ω as in App. D.1 (`loss_growth_rates`).
    Resampling loses rare pairs, which makes supports smaller, so the resampled rates of each
    concept are moved to have its own rate as their mean.

    Examples
    --------
    >>> from ontogeny import tasks
    >>> order = predicted_order(
    ...     tasks.bundled_texts("english")[:60], k=5, vocab_size=99, n_draws=2
    ... )
    >>> (
    ...     order.rates.shape,
    ...     bool((order.rate_interval[:, 0] < order.rates).all()),
    ...     order.unit,
    ... )
    ((5,), True, 'texts')
    """
    check_choice("loss", loss, _DRIVERS)
    check_flag("weighted", weighted)
    check_whole("resamples", resamples, 2)
    check_whole("n_draws", n_draws, 2)
    check_whole("random_state", random_state, 0)
    stream = _stream(texts, names)
    support = support_matrix(stream, vocab_size, n_contexts, lengths)
    shares = support.pi if weighted else np.full(support.shape[1], 1 / support.shape[1])
    rng = np.random.default_rng(random_state)
    seeds = rng.integers(0, 2**32, n_draws).tolist()
    corpora = [support, *(shuffled_next_words(support, seed) for seed in seeds)]
    # Few of many concepts are wanted, for which the Gram matrix is several times as fast.
    method = "gram" if min(support.shape) <= GRAM_ROWS else "auto"
    basis, *shuffled = (
        svd_concepts(c, k, of=_DRIVERS[loss], weights=shares, method=method)
        for c in corpora
    )
    k = min(candidate.k for candidate in (basis, *shuffled))
    basis, *shuffled = (_leading(candidate, k) for candidate in (basis, *shuffled))
    units = ResampledCorpus.of(stream, support)
    resampled = np.stack(
        [
            _rates(units.draw(rng), basis, loss, None if weighted else shares)
            for _ in range(resamples)
        ]
    )
    resampled += basis.sigma - resampled.mean(axis=0)
    return PredictedOrder(
        support, basis, resampled, shuffled, loss, shares, units.count, units.unit
    )


def _stream(texts: Tokens, names: Sequence[str] | None) -> WordStream:
    several = (
        isinstance(texts, Sequence) and not isinstance(texts, str) and len(texts) > 0
    )
    if several and any(
        isinstance(text, str) and len(text.split()) > 1 for text in texts
    ):
        if names is not None:
            raise ArgumentError(
                f"names must be left out where texts are words: they name token ids; got {names!r}."
            )
        return word_stream(texts)
    return token_stream(texts, names)


def _leading(basis: ConceptBasis, k: int) -> ConceptBasis:
    assert basis.V is not None
    U = basis.U[:, :k]
    sigma = basis.sigma[:k]
    V = basis.V[:, :k]
    return ConceptBasis(U, sigma, V, basis.words, basis.contexts, basis.source)


def _rates(
    support: Support, basis: ConceptBasis, loss: str, shares: np.ndarray | None
) -> np.ndarray:
    """Return u_kᵀ M v_k of another corpus's driver along the concepts of this one, (k,)."""
    M = _driver(support, loss, support.pi if shares is None else shares)
    assert basis.V is not None
    return np.sum(basis.U * M.times(basis.V), axis=0)


def _driver(support: Support, loss: str, shares: np.ndarray) -> Centred:
    values = getattr(support, _DRIVERS[loss])
    return Centred(values @ sparse.diags_array(shares))
