"""Whether concepts were learned in the order that their corpus predicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from ontogeny.arrays import numpy_matrix
from ontogeny.errors import ArgumentError, check_number, check_type, check_whole
from ontogeny.features.wordspace.order import first_crossing
from ontogeny.words.formats import plural

from .learned_order import learning_order
from .predicted import PredictedOrder

_DRAWS = 999


@dataclass(frozen=True, eq=False)
class OrderComparison:
    """A predicted order beside the measured one.

    Parameters
    ----------
    spearman
        Rank correlation of the predicted rates with minus the steps at which the concepts were
        learned, mean over seeds: 1 if faster ones always came first.
    interval
        Its 95 % interval over resampled texts, concepts and seeds.
    of_seed
        The correlation of every seed (seeds,).
    shuffled
        The mean over seeds for the concepts of every shuffled corpus (draws,), in the same models.
    p_value
        Share of random orders of the concepts that reach `spearman`, the same order in all seeds,
        one-sided.
    learned_at
        Step at which each seed learned each concept (seeds, k), NaN where it never did.
    """

    spearman: float
    interval: tuple[float, float]
    of_seed: np.ndarray
    shuffled: np.ndarray
    p_value: float
    learned_at: np.ndarray

    @property
    def shuffled_interval(self) -> tuple[float, float]:
        """Where 95 % of the shuffled corpora lie."""
        low, high = np.quantile(self.shuffled, [0.025, 0.975])
        return float(low), float(high)

    def __str__(self) -> str:
        (low, high) = self.interval
        (lower, upper) = self.shuffled_interval
        seeds = plural(len(self.of_seed), "seed")
        return (
            f"rank correlation {self.spearman:.2f} ({low:.2f} to {high:.2f}) over "
            f"{self.learned_at.shape[1]} concepts and {seeds}; concepts of "
            f"shuffled corpora {lower:.2f} to {upper:.2f}; random orders p = {self.p_value:.2g}"
        )


def compare_order(
    order: PredictedOrder,
    steps: ArrayLike,
    shares: ArrayLike,
    *,
    level: float = 0.5,
    random_state: int = 0,
) -> OrderComparison:
    """Compare a predicted order with the one in which models learned the concepts.

    Parameters
    ----------
    order
        From `predicted_order`.
    steps
        Steps (T,), increasing.
    shares
        ``order.learned_shares(logits)`` at every step of every seed, (seeds, T, 1 + draws, k), or
        (T, 1 + draws, k) of a single one.
    level
        Share from which on a concept counts as learned, if it stays there.
    random_state
        Seed of the resampling.

    Returns
    -------
    OrderComparison

    Raises
    ------
    ArgumentError
        If the shapes do not fit, or there are fewer than 3 concepts.

    Notes
    -----
    Concepts that were never learned count as learned last, all at once. Each of 999 draws takes
    the rates of one resampled corpus, and seeds and concepts with replacement. Concepts are not
    independent, so the interval is too narrow rather than too wide; the concepts of shuffled
    corpora, measured in the same models, are the sterner comparison.

    Examples
    --------
    >>> from ontogeny import semantics, tasks
    >>> texts = tasks.bundled_texts("english")[:30]
    >>> order = semantics.predicted_order(texts, 5, vocab_size=40, n_draws=2)
    >>> times = np.arange(2000.0)
    >>> grown = 1 / (1 + np.exp(8 - order.rates * times[:, None]))
    >>> shares = np.stack(
    ...     [grown] + [np.full_like(grown, 0.1)] * len(order.shuffled), axis=1
    ... )
    >>> compare_order(order, times, shares).spearman
    1.0
    """
    check_type("order", order, PredictedOrder)
    check_number("level", level, above=True)
    check_whole("random_state", random_state, 0)
    times = numpy_matrix("steps", steps, ndim=1)
    values = numpy_matrix("shares", shares, ndim=-1)
    values = values[None] if values.ndim == 3 else values
    fitting = (len(times), 1 + len(order.shuffled), len(order.rates))
    if values.ndim != 4 or values.shape[1:] != fitting:
        raise ArgumentError(
            f"shares must be (seeds, {', '.join(map(str, fitting))}), what learned_shares gives at "
            f"each of {len(times)} steps; their shape is {np.shape(shares)}."
        )
    learned = first_crossing(times, values.transpose(0, 2, 3, 1), level, lasting=True)
    first = learned[:, 0]
    shuffled = learned[:, 1:]
    of_seed = np.array(
        [learning_order(order.rates, row, n_draws=1).spearman for row in first]
    )
    null = [
        [learning_order(basis.sigma, row, n_draws=1).spearman for row in seeds]
        for basis, seeds in zip(
            order.shuffled, shuffled.transpose(1, 0, 2), strict=True
        )
    ]
    early = rankdata(-np.where(np.isfinite(first), first, np.inf), axis=1)
    rng = np.random.default_rng(random_state)
    return OrderComparison(
        float(np.nan_to_num(of_seed).mean()),
        _interval(order.resampled, early, rng),
        of_seed,
        # A model in which no concept of a shuffled corpus is learned has no order: 0.
        np.nan_to_num(np.array(null)).mean(axis=1),
        _p_value(order.rates, early, rng),
        first,
    )


def _correlation(large: np.ndarray, early: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation along the last axis; 0 where nothing varies."""
    ranks = [rankdata(values, axis=-1) for values in (large, early)]
    a, b = (rank - rank.mean(axis=-1, keepdims=True) for rank in ranks)
    norm = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    rho: np.ndarray = np.where(
        norm > 0, (a * b).sum(axis=-1) / np.where(norm > 0, norm, 1), 0.0
    )
    return rho


def _interval(
    resampled: np.ndarray, early: np.ndarray, rng: np.random.Generator
) -> tuple[float, float]:
    seeds, k = early.shape
    corpus = rng.integers(len(resampled), size=_DRAWS)
    concept = rng.integers(k, size=(_DRAWS, 1, k))
    seed = rng.integers(seeds, size=(_DRAWS, seeds, 1))
    large = resampled[corpus[:, None, None], concept]
    draws = _correlation(
        np.broadcast_to(large, (_DRAWS, seeds, k)), early[seed, concept]
    )
    low, high = np.quantile(draws.mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _p_value(rates: np.ndarray, early: np.ndarray, rng: np.random.Generator) -> float:
    """Return how often one random order of the concepts, the same in all seeds, reaches theirs."""
    rho = _correlation(np.broadcast_to(rates, early.shape), early).mean()
    orders = rng.permuted(np.tile(rates, (_DRAWS, 1)), axis=1)[:, None]
    null = _correlation(
        np.broadcast_to(orders, (_DRAWS, *early.shape)), early[None]
    ).mean(axis=1)
    return float((1 + (null >= rho - 1e-12).sum()) / (1 + _DRAWS))
