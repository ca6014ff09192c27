"""How likely permuted codes are to lie on chosen tokens as much as the codes do."""

from __future__ import annotations

import numpy as np

from .halves import Confirmation

_LEAST, _MOST = 1e-5, 1e5  # of the exponent, for strengths from 0 to 1
_HALVINGS = 24


def permutation_bound(found: Confirmation) -> np.ndarray:
    r"""Return (r,) an upper bound of the permutation p-value of what one half confirms.

    With the codes of the half permuted over its tokens, the squared code on the k rows of the
    chosen tokens is the sum of k values drawn without replacement. Hoeffding (1963, theorem 4)
    bounds its exponential moments by those of a draw with replacement, so that

    P(sum ≥ s) ≤ min over λ > 0 of exp(-λ s) (mean of exp(λ q))^k.

    The bound holds at every λ, is never below the p-value, and has no smallest value that a number
    of permutations would set: it can be corrected for many concepts.

    Notes
    -----
    W. Hoeffding, *Probability inequalities for sums of bounded random variables*, JASA 58, 1963.
    """
    n, r = found.strength.shape
    largest = found.strength.max(axis=0)
    scale = np.where(largest > 0, largest, 1.0)
    fires, column = np.nonzero(found.strength)
    q = found.strength[fires, column] / scale[column]
    absent = n - np.bincount(column, minlength=r)
    k, s = found.occurrences, found.carried / scale

    def moments(exponent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of exp(λ (q - 1)) and the tilted mean of q."""
        weights = np.exp(exponent[column] * (q - 1))
        total = absent * np.exp(-exponent) + np.bincount(column, weights, minlength=r)
        tilted = np.bincount(column, weights * q, minlength=r)
        return total / n, tilted / np.maximum(total, np.finfo(float).tiny)

    low, high = np.full(r, np.log(_LEAST)), np.full(r, np.log(_MOST))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = k * moments(np.exp(middle))[1] < s
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    best = np.exp((low + high) / 2)
    mean = moments(best)[0]
    usable = (largest > 0) & (k > 0) & (mean > 0)
    log_p = best * (k - s) + k * np.log(np.where(usable, mean, 1.0))
    return np.where(usable, np.exp(np.minimum(log_p, 0.0)), 1.0)
