"""Many quantities at once against the same quantities with shuffled labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.errors import ArgumentError, check_choice


@dataclass(frozen=True)
class PermutationTest:
    """What `permutation_test` found.

    Parameters
    ----------
    p_value
        For each quantity alone; NaN where it was not tested.
    p_corrected
        The same, corrected for having tested all of them.
    """

    p_value: np.ndarray
    p_corrected: np.ndarray


def permutation_test(
    observed: ArrayLike,
    shuffled: ArrayLike,
    centre: float | None = None,
    alternative: str = "two-sided",
) -> PermutationTest:
    """Compare quantities with what shuffled labels give, corrected over all of them.

    P. H. Westfall and S. S. Young, *Resampling-Based Multiple Testing*, 1993: with the same
    shuffles in every test, the largest of the standardised quantities of each shuffle gives the
    distribution of the largest one by chance. The corrected p-values then control the family-wise
    error whatever the tests' dependence (neighbouring steps and layers hardly differ), and can
    reach 1 / (R + 1) however many tests there are; Holm's, of p-values that cannot be smaller than
    1 / (R + 1), cannot. Exact where labels are exchangeable.

    Parameters
    ----------
    observed
        Any shape; NaN is left out.
    shuffled
        The same shape and one more axis at the end: R shuffles, each of them the same in all tests.
    centre
        Value without any effect; None takes the mean over the shuffles and the observation.
    alternative
        ``"two-sided"``: far from the centre; ``"greater"``: above it.

    Raises
    ------
    ArgumentError
        If the shapes disagree, or there is no shuffle.

    Examples
    --------
    >>> shuffled = np.random.default_rng(0).normal(0.5, 0.05, size=(2, 99))
    >>> test = permutation_test([0.9, 0.52], shuffled, centre=0.5)
    >>> test.p_corrected.round(2).tolist()
    [0.01, 0.86]
    """
    check_choice("alternative", alternative, ("two-sided", "greater"))
    values = np.asarray(observed, dtype=float)
    draws = np.asarray(shuffled, dtype=float)
    if (
        draws.shape[:-1] != values.shape
        or draws.ndim != values.ndim + 1
        or not draws.shape[-1]
    ):
        raise ArgumentError(
            "shuffled must have the shape of observed and a last axis of at least one shuffle; "
            f"got {draws.shape} for {values.shape}."
        )
    every = np.concatenate([values[..., None], draws], axis=-1).reshape(values.size, -1)
    tested = np.isfinite(every).all(axis=1)
    p_value, p_corrected = np.full((2, values.size), np.nan)
    if tested.any():
        size = _standardised(every[tested], centre, alternative)
        p_value[tested] = (size >= size[:, :1]).mean(axis=1)
        largest = size.max(axis=0)
        p_corrected[tested] = (largest[None] >= size[:, :1]).mean(axis=1)
    return PermutationTest(
        p_value.reshape(values.shape), p_corrected.reshape(values.shape)
    )


def _standardised(
    every: np.ndarray, centre: float | None, alternative: str
) -> np.ndarray:
    """Return distances from the centre in units of their spread over shuffles and observation.

    Centre and spread treat the observation like any shuffle, so that the test stays exact.
    """
    middle = every.mean(axis=1, keepdims=True) if centre is None else centre
    offset = every - middle
    spread = np.sqrt((offset**2).mean(axis=1, keepdims=True))
    offset = np.abs(offset) if alternative == "two-sided" else offset
    # Rounding must not make equal values differ: a score is a count over a few hundred texts.
    return np.round(offset / np.where(spread > 0, spread, 1), 9)
