"""What a matching of columns is worth: its level beside chance and beside a refit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ontogeny.arrays import Array, to_numpy
from ontogeny.distances.correlations import optimal_of
from ontogeny.distances.pair import Factors, Pair, pair_of
from ontogeny.errors import ArgumentError

from .stacks import prepared


@dataclass(frozen=True)
class MatchingLevel:
    """How well the columns of two dictionaries match, and what else would.

    Attributes
    ----------
    score
        Optimal correlation: mean ``|cos|`` of matched columns.
    chance
        Its mean when the features of each column of V are shuffled.
    chance_interval
        The middle 95 % of these shuffled scores.
    p_value
        Share of shuffled scores that reach the score, (b + 1) / (n + 1).
    ceiling
        The score between W and a refit of W with another seed, or NaN without one: what the
        extractor's own freedom leaves.
    """

    score: float
    chance: float
    chance_interval: tuple[float, float]
    p_value: float
    ceiling: float = float("nan")


def matching_level(
    W: Array,
    V: Array,
    *,
    reseeded: Array | None = None,
    n_shuffles: int = 100,
    random_state: int = 0,
) -> MatchingLevel:
    """Score the best one-to-one matching of columns, with its chance level and its ceiling.

    Parameters
    ----------
    W, V
        Dictionaries of shape (m, r), NumPy or PyTorch.
    reseeded
        A second fit of W's step with another seed, (m, r).
    n_shuffles
        Number of shuffled copies of V. Each column's entries are permuted over the features: its
        values stay, so that dictionaries of one sign keep their trivial overlap in the null.
    random_state
        Seed of the shuffles.

    Returns
    -------
    MatchingLevel

    Raises
    ------
    ArgumentError
        If a shape is wrong or `n_shuffles` is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.random.default_rng(0).standard_normal((60, 5))
    >>> level = matching_level(W, -W[:, ::-1])
    >>> level.score > 0.999 and level.chance < 0.4 and level.p_value < 0.01
    True
    """
    pair, argument = pair_of(W, V)
    if argument.ndim != 2:
        raise ArgumentError(f"W and V must have two dimensions; their shape is {argument.shape}.")
    score = float(optimal_of(pair)[0])
    null = shuffled_matches(
        pair.first, pair.second, n_shuffles, np.random.default_rng(random_state)
    ).mean(axis=-1)
    low, high = np.quantile(null, [0.025, 0.975])
    ceiling = float("nan")
    if reseeded is not None:
        ceiling = float(optimal_of(pair_of(argument, reseeded)[0])[0])
    return MatchingLevel(
        score=score,
        chance=float(null.mean()),
        chance_interval=(float(low), float(high)),
        p_value=float((np.sum(null >= score) + 1) / (n_shuffles + 1)),
        ceiling=ceiling,
    )


def shuffled_matches(
    first: Factors, second: Factors, n_shuffles: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the matched ``|cos|`` of one W with shuffled copies of one V, (n_shuffles, r)."""
    if n_shuffles < 1:
        raise ArgumentError(f"n_shuffles must be at least 1; got {n_shuffles}.")
    W, V = to_numpy(first.stack), to_numpy(second.stack)
    if len(W) != 1 or len(V) != 1:
        raise ArgumentError("shuffled matches are those of a single pair.")
    here = prepared(Factors(W, first.floor), svd=False)
    copies = (Factors(rng.permuted(V, axis=-2), second.floor) for _ in range(n_shuffles))
    return np.concatenate([Pair(here, copy).matched for copy in copies])
