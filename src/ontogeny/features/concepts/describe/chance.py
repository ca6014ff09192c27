"""How likely permuted codes are to lie on chosen tokens as much as the codes do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from .rows import Confirmation

ITERATIONS = 40
LONGEST = 4.0  # a Newton step at most, for strengths from 0 to 1
RIDGE = 1e-6  # of the Hessian: where the best slope is infinite it vanishes
STEP = 1 / 1.05  # levels of strengths are five per cent apart
LOWEST = 1e-6
# No sum of Bernoulli trials has a value likelier than this / its deviation.
CONCENTRATED = 0.4688


def permutation_bound(half: Confirmation) -> np.ndarray:
    r"""Return (r,) an upper bound of the permutation p-value of what one half confirms.

    With the codes of the half permuted over its n tokens, the squared code on the k rows of the
    chosen tokens is the sum S of k of the n values q, drawn without replacement. Such a draw is
    one of independent Bernoulli trials with log odds a + λ q, given that k of them succeed. For
    every a and every λ ≥ 0, therefore,

    P(S ≥ s) ≤ exp(-λ s - a k) Π (1 + exp(a + λ q)) P(k succeed) / (n over k),

    and P(k succeed) is at most .4688 over the standard deviation of the number of successes
    (Baillon et al. 2016). The best a and λ are found by Newton's method; the bound holds at any.
    It is never below the p-value, and has no smallest value that a number of permutations would
    set: it can be corrected for many concepts.

    Notes
    -----
    J.-B. Baillon, R. Cominetti and J. Vaisman, *A sharp uniform bound for the distribution of sums
    of Bernoulli trials*, Combinatorics, Probability and Computing 25, 2016.
    """
    n, r = half.strength.shape
    k = half.occurrences
    largest = half.strength.max(axis=0)
    # Else every permutation gives the same sum.
    possible = (largest > 0) & (k > 0) & (k < n)
    if not possible.any():
        return np.ones(r)
    k = k[possible]
    strength = half.strength[:, possible] / largest[possible]
    s = half.carried[possible] / largest[possible]
    tilted = _Tilted.of(strength)
    odds, slope = _minimised(tilted, k, s)
    value, _, _, variance, _, _ = tilted.at(odds, slope, k, s)
    likeliest = np.minimum(CONCENTRATED / np.sqrt(np.maximum(variance, 1e-12)), 1.0)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    log_p = value + np.log(likeliest) - ways
    bound = np.ones(r)
    bound[possible] = np.exp(np.minimum(log_p, 0.0))
    return bound


@dataclass(frozen=True, eq=False)
class _Tilted:
    """Bernoulli trials with log odds a + λ q, for each concept, counted by levels of q.

    Attributes
    ----------
    level
        (levels, 1), 0 and 1 among them.
    count
        (levels, r) rows of each level.
    """

    level: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, q: np.ndarray) -> _Tilted:
        """Return the trials of strengths (n, r) from 0 to 1, each rounded up to its level.

        Values rounded up make sums as large as s likelier, so that the bound stays one.
        """
        lowest = np.ceil(np.log(LOWEST) / np.log(STEP)).astype(int)
        row, column = np.nonzero(q)
        place = np.floor(np.log(q[row, column]) / np.log(STEP) + 1e-9).astype(int)
        place = np.clip(place, 0, lowest)
        r = q.shape[1]
        levels = lowest + 2
        count = np.bincount(place * r + column, minlength=levels * r).reshape(levels, r)
        count[-1] = len(q) - count.sum(axis=0)
        return cls(np.append(STEP ** np.arange(lowest + 1), 0.0)[:, None], count)

    def at(
        self, odds: np.ndarray, slope: np.ndarray, k: np.ndarray, s: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return log of Π (1 + exp(a + λ q)) exp(-a k - λ s), its gradient and its Hessian."""
        logit = odds + slope * self.level
        p = 0.5 * (1 + np.tanh(logit / 2))
        expected = self.count * p
        spread = self.count * p * (1 - p)
        weighted = spread * self.level
        return (
            (self.count * np.logaddexp(0, logit)).sum(axis=0) - odds * k - slope * s,
            expected.sum(axis=0) - k,
            (expected * self.level).sum(axis=0) - s,
            spread.sum(axis=0),
            weighted.sum(axis=0),
            (weighted * self.level).sum(axis=0),
        )


def _minimised(
    tilted: _Tilted, k: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log odds and the slope, not below 0, that make the bound nearly smallest."""
    odds = np.log(k / (tilted.count.sum(axis=0) - k))
    slope = np.zeros(len(k))
    scale = np.ones(len(k))
    now = np.stack(tilted.at(odds, slope, k, s))
    for _ in range(ITERATIONS):
        value, g0, g1, h00, h01, h11 = now
        h00 = h00 + RIDGE
        h11 = h11 + RIDGE
        determinant = h00 * h11 - h01**2
        step0 = (h01 * g1 - h11 * g0) / determinant
        step1 = (h01 * g0 - h00 * g1) / determinant
        length = np.maximum(np.abs(step0), np.abs(step1))
        factor = scale * LONGEST / np.maximum(length, LONGEST)
        tried = odds + factor * step0, np.maximum(slope + factor * step1, 0.0)
        new = np.stack(tilted.at(*tried, k, s))
        better = new[0] < value
        if not better.any() and length.max() < 1e-6:
            break
        scale = np.where(better, np.minimum(2 * scale, 1.0), scale / 4)
        odds = np.where(better, tried[0], odds)
        slope = np.where(better, tried[1], slope)
        now = np.where(better, new, now)
    return odds, slope
