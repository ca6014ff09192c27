"""Whether concepts are learned in the order of their singular values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from ontogeny.arrays import numpy_matrix
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.features.wordspace.order import checked_numbers


@dataclass(frozen=True)
class LearningOrder:
    """What `learning_order` found.

    Parameters
    ----------
    spearman
        Rank correlation of the singular values with minus the learning steps: 1 if larger ones
        are always learned first; NaN if all steps, or all singular values, are equal.
    p_value
        Share of random orders of the steps that reach it, one-sided.
    learned
        Concepts that were learned at all.
    concepts
        Concepts compared; the others count as learned last.
    """

    spearman: float
    p_value: float
    learned: int
    concepts: int


def learning_order(
    sigma: ArrayLike,
    learned_at: ArrayLike,
    *,
    n_draws: int = 9999,
    random_state: int = 0,
) -> LearningOrder:
    """Test whether concepts with larger singular values are learned earlier.

    Parameters
    ----------
    sigma
        Singular values (r,), at least 3.
    learned_at
        Step at which each concept is learned (r,), NaN where it never is: those count as learned
        last, all at once.
    n_draws, random_state
        Random orders for the p-value, and their seed.

    Raises
    ------
    ArgumentError
        If the lengths differ, or there are fewer than 3 concepts.

    Notes
    -----
    Spearman's rank correlation with mid-ranks for ties. The concepts' curves are coupled, so the
    p-value says that the order is not arbitrary, not how many concepts support it; compare with
    the same number on a corpus with shuffled next words.

    Examples
    --------
    >>> learning_order([3.0, 2.0, 1.0, 0.5], [10, 20, 40, np.nan]).spearman
    1.0
    """
    values = numpy_matrix("sigma", sigma, ndim=1)
    steps = checked_numbers("learned_at", learned_at)
    if steps.shape != values.shape:
        raise ArgumentError(
            f"learned_at must have one step for each of {len(values)} singular values; "
            f"its shape is {steps.shape}."
        )
    if len(values) < 3:
        raise ArgumentError(
            f"a rank correlation needs at least 3 concepts; got {len(values)}."
        )
    check_whole("n_draws", n_draws)
    check_whole("random_state", random_state, 0)
    learned = np.isfinite(steps)
    early = _standard(rankdata(-np.where(learned, steps, np.inf)))
    large = _standard(rankdata(values))
    if early is None or large is None:
        return LearningOrder(np.nan, np.nan, int(learned.sum()), len(values))
    spearman = float(large @ early)
    rng = np.random.default_rng(random_state)
    draws = rng.permuted(np.tile(early, (n_draws, 1)), axis=1) @ large
    reached = int((draws >= spearman - 1e-12).sum())
    p_value = (1 + reached) / (1 + n_draws)
    # Products of ranks that are exactly equal may come out as 1 + 2e-16.
    return LearningOrder(
        float(np.clip(round(spearman, 12), -1, 1)),
        p_value,
        int(learned.sum()),
        len(values),
    )


def _standard(ranks: np.ndarray) -> Any:
    centred = ranks - ranks.mean()
    norm = np.linalg.norm(centred)
    return None if norm == 0 else centred / norm
