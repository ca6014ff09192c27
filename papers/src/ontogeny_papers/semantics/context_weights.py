"""Weights of the loss by context that should advance or delay a concept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from ontogeny.arrays import Array, is_array, namespace, to_numpy
from ontogeny.errors import (
    ArgumentError,
    check_number,
    check_texts,
    check_type,
    check_whole,
)
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny.features.wordspace.counting import matched_positions, relabelled
from ontogeny.features.wordspace.support import ContextWords

from .predicted import PredictedOrder

_KEEP = 100.0  # how much a change of another concept's rate counts beside the spread of the weights
_NEIGHBOURS = 25  # contexts about as frequent, among which weights change places
_EXCHANGES = 50


@dataclass(frozen=True, eq=False)
class ContextWeights:
    """A weight for the loss after each context; their mean over the text is 1.

    Parameters
    ----------
    weights
        (m,), above 0.
    order
        The predicted order that they were made from.
    leverage
        (1 + k, m): the share of each context in the growth rate of the chosen concept (first) and
        of every concept of the order; rows sum to 1.
    """

    weights: np.ndarray
    order: PredictedOrder
    leverage: np.ndarray

    @property
    def chosen_ratio(self) -> float:
        """Factor by which the weights should change the rate of the chosen concept."""
        return float(self.leverage[0] @ self.weights)

    @property
    def rate_ratios(self) -> np.ndarray:
        """Factors by which they should change the rates of all concepts of the order (k,).

        u_kᵀ M diag(w) v_k / σ_k = Σ_j w_j v_kj²: exact for the first updates along the concept.
        """
        return self.leverage[1:] @ self.weights

    @property
    def spread(self) -> float:
        """Standard deviation of the weights over the positions of the text."""
        return float(np.sqrt(self.order.shares @ (self.weights - 1) ** 2))

    def inverted(self) -> ContextWeights:
        """Return the weights 1 − α (w − 1), which change every rate the other way.

        α is 1, or as small as needed for no weight to fall below the smallest of these; rates are
        multiplied by 1 − α (r − 1) where these weights multiply them by r.
        """
        above = self.weights.max() - 1
        least = min(self.weights.min(), 1 - 1e-9)
        alpha = min(1.0, (1 - least) / above) if above > 0 else 1.0
        return replace(self, weights=1 - alpha * (self.weights - 1))

    def permuted(self, random_state: int = 0) -> ContextWeights:
        """Return the same weights at random contexts about as frequent: a control of equal spread.

        Contexts change places within groups of 25 neighbours in frequency. Of 50 such exchanges,
        the one is taken whose spread comes closest to that of the weights.

        Parameters
        ----------
        random_state
            Seed of the places.
        """
        rng = np.random.default_rng(check_whole("random_state", random_state, 0))
        often = np.argsort(-self.order.shares, kind="stable")
        groups = np.split(often, range(_NEIGHBOURS, len(often), _NEIGHBOURS))
        candidates = [self._exchanged(groups, rng) for _ in range(_EXCHANGES)]
        return min(
            candidates, key=lambda candidate: abs(candidate.spread - self.spread)
        )

    def at(self, ids: Array) -> Array:
        """Return the weight of every token's own loss, for any training loop.

        Multiply the loss of predicting ``ids[..., 1:]`` by ``weights.at(ids)[..., 1:]``.

        Parameters
        ----------
        ids
            Tokens (n,) or (texts, n): the ids that were counted. Negative ones are of no text.

        Returns
        -------
        Array
            Weights of the shape of `ids`, float64 in NumPy and float32 in PyTorch: the mean weight
            of the contexts that end before the token; 1 where none does, or where the token is
            not among the words that were counted.

        Raises
        ------
        ArgumentError
            If `ids` are no integers, or the order was not counted in running text.

        Examples
        --------
        >>> from ontogeny import semantics
        >>> tokens = np.array([0, 1, 0, 2, 0, 1, 1, 0, 2, 2, 0])
        >>> order = semantics.predicted_order(tokens, 2, lengths=1)
        >>> weights = context_weights(order, 1, 1.1)
        >>> weights.at(tokens[:4]).shape, float(weights.at(tokens)[0])
        ((4,), 1.0)
        """
        array = ids if is_array(ids) else np.asarray(ids)
        tokens = to_numpy(array)
        if not np.issubdtype(tokens.dtype, np.integer) or tokens.ndim not in (1, 2):
            raise ArgumentError(
                f"ids must be integers, (n,) or (texts, n); got {tokens.dtype} of shape "
                f"{tokens.shape}."
            )
        support = self.order.support
        if not isinstance(support.contexts, ContextWords):
            raise ArgumentError(
                "the order's contexts were not counted in running text."
            )
        rows = np.full((*np.atleast_2d(tokens).shape[:-1], tokens.shape[-1] + 1), -1)
        # Nothing is matched across the end of a text.
        rows[:, :-1] = np.atleast_2d(tokens)
        stream = relabelled(rows.ravel(), support.word_ids)
        sums, counts = np.zeros((2, len(stream)))
        for positions, columns in matched_positions(
            stream, support.contexts.ids, support.shape[0]
        ):
            sums += np.bincount(positions, self.weights[columns], minlength=len(stream))
            counts += np.bincount(positions, minlength=len(stream))
        mean = np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)
        weights = mean.reshape(rows.shape)[:, :-1].reshape(tokens.shape)
        xp = namespace(array)
        if isinstance(array, np.ndarray):
            return weights
        return xp.asarray(weights, dtype=xp.float32, device=array.device)

    def _exchanged(
        self, groups: list[np.ndarray], rng: np.random.Generator
    ) -> ContextWeights:
        weights = self.weights.copy()
        for group in groups:
            weights[group] = weights[rng.permutation(group)]
        return self._scaled(weights)

    def _scaled(self, weights: np.ndarray) -> ContextWeights:
        return replace(self, weights=weights / (self.order.shares @ weights))


def context_weights(
    order: PredictedOrder,
    concept: int | Iterable[str],
    factor: float,
    *,
    largest: float = 4.0,
) -> ContextWeights:
    """Return loss weights by context under which a concept should be learned sooner or later.

    The weights multiply the growth rate of the concept by `factor`, change those of the order's
    other concepts as little as possible, and among all such weights lie closest to 1.

    Parameters
    ----------
    order
        From `predicted_order`, of the text that is trained on.
    concept
        Number of a concept, from 1, or a set of words, to be distinguished from all others.
    factor
        Above 1 to advance the concept, below 1 to delay it. Where its contexts serve other
        concepts too, only a part can be reached; the error then says how much.
    largest
        Weights lie between 1/largest and largest.

    Returns
    -------
    ContextWeights

    Raises
    ------
    ArgumentError
        If an argument is out of range, or no weights within the limits reach the factor.

    Notes
    -----
    With weights w the driver is M diag(w), and along (u_k, v_k) it is σ_k Σ_j w_j v_kj²: the
    context j has the share v_kj² in the rate of the concept k. The weights enter once, because
    the gradient of a weighted loss holds them once. The time to learn a concept goes with
    one over its rate (Zhao and Thrampoulidis 2025, Proposition 1). The weights minimise
    Σ_j π_j (w_j − 1)² + 100 Σ_k (r_k − t_k)² under the limits, Σ_j π_j w_j = 1 and the factor. r_k
    is the factor by which the rate of another concept changes, and t_k is 1, or as much more as
    its words are those of the chosen set. This is a quadratic problem, solved through its dual.

    Examples
    --------
    >>> from ontogeny import semantics, tasks
    >>> order = semantics.predicted_order(
    ...     tasks.bundled_texts("english")[:60], 5, vocab_size=99
    ... )
    >>> weights = context_weights(order, 3, 1.5)
    >>> round(weights.chosen_ratio, 3), round(float(order.shares @ weights.weights), 3)
    (1.5, 1.0)
    """
    check_type("order", order, PredictedOrder)
    check_number("factor", factor, above=True)
    if not isinstance(concept, int | np.integer):
        # Also an iterator, read once.
        concept = check_texts("concept", concept, "words")
    lowest, highest = factor_limits(order, concept, largest=largest)
    basis = _basis(order, concept)
    assert basis.V is not None and order.basis.V is not None
    leverage = np.concatenate([basis.V[:, :1].T ** 2, order.basis.V.T**2])
    limits = (1 / largest, float(largest))
    if not lowest < factor < highest:
        raise ArgumentError(
            f"factor must lie between {lowest:.3g} and {highest:.3g}, what weights of "
            f"{limits[0]:.3g} to {limits[1]:.3g} can do to this concept; got {factor:g}."
        )
    alike = (basis.U[:, 0] @ order.basis.U) ** 2
    others = alike < 1 - 1e-9
    rows = np.concatenate([order.shares[None], leverage[:1], leverage[1:][others]])
    targets = np.r_[1.0, factor, 1 + (factor - 1) * alike[others]]
    softness = np.r_[0.0, 0.0, np.full(int(others.sum()), 1 / _KEEP)]
    weights = _closest(rows, targets, softness, order.shares, limits)
    return ContextWeights(weights, order, leverage)


def factor_limits(
    order: PredictedOrder, concept: int | Iterable[str], *, largest: float = 4.0
) -> tuple[float, float]:
    """Return between which factors `context_weights` can change the growth rate of a concept.

    Parameters
    ----------
    order, concept, largest
        As for `context_weights`.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> from ontogeny import semantics, tasks
    >>> order = semantics.predicted_order(
    ...     tasks.bundled_texts("english")[:60], 5, vocab_size=99
    ... )
    >>> low, high = factor_limits(order, 3)
    >>> low < 1 < high < 4
    True
    """
    check_type("order", order, PredictedOrder)
    if check_number("largest", largest, above=True) <= 1:
        raise ArgumentError(f"largest must be above 1; got {largest}.")
    V = _basis(order, concept).V
    assert V is not None
    low, high = (
        _attainable(V[:, 0] ** 2, order.shares, (1 / largest, float(largest)), sign)
        for sign in (-1, 1)
    )
    return low, high


def _basis(order: PredictedOrder, concept: int | Iterable[str]) -> ConceptBasis:
    if not isinstance(concept, int | np.integer):
        return order.of_words(concept)
    k = check_whole("concept", concept, 1, len(order.rates)) - 1
    basis = order.basis
    assert basis.V is not None
    return ConceptBasis(basis.U[:, [k]], basis.sigma[[k]], basis.V[:, [k]])


def _attainable(
    leverage: np.ndarray, shares: np.ndarray, limits: tuple[float, float], sign: int
) -> float:
    """Return the smallest (sign −1) or largest (1) Σ leverage w with Σ shares w = 1 in the limits.

    A fractional knapsack: the contexts with most leverage for their share get the largest weight.
    """
    order = np.argsort(-sign * leverage / shares)
    low, high = limits
    weights = np.full(len(shares), low)
    budget = 1 - low  # of the shares, which sum to 1
    filled = np.cumsum(shares[order]) * (high - low)
    before = np.concatenate([[0.0], filled[:-1]])
    weights[order] += np.clip((budget - before) / shares[order], 0, high - low)
    return float(leverage @ weights)


def _closest(
    rows: np.ndarray,
    targets: np.ndarray,
    softness: np.ndarray,
    shares: np.ndarray,
    limits: tuple[float, float],
) -> np.ndarray:
    """Minimise ½ Σ π (w − 1)² + Σ_i (rows_i w − targets_i)² / (2 softness_i) within the limits.

    Rows of softness 0 are constraints. The dual has one unknown for each row.
    """

    def weights(dual: np.ndarray) -> np.ndarray:
        return np.clip(1 + dual @ rows / shares, *limits)

    def negative(dual: np.ndarray) -> tuple[float, np.ndarray]:
        w = weights(dual)
        missed = rows @ w - targets
        value = shares @ (w - 1) ** 2 / 2 - dual @ missed - softness @ dual**2 / 2
        return -float(value), missed + softness * dual

    fit = minimize(
        negative, np.zeros(len(rows)), jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    return weights(fit.x)
