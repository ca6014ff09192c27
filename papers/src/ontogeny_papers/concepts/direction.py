"""Several separating directions on the same samples, and two plain ways to get them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import softplus


@dataclass(frozen=True)
class Fits:
    """Several directions on the same activations.

    Parameters
    ----------
    coef
        (K, m) float64 minimisers, not normalised.
    intercept
        (K,) thresholds; zero without an intercept.
    converged
        (K,) whether each met the tolerance.
    n_iter
        (K,) iterations.
    """

    coef: np.ndarray
    intercept: np.ndarray
    converged: np.ndarray
    n_iter: np.ndarray

    @property
    def directions(self) -> np.ndarray:
        """(K, m) the same with unit norm; a zero vector, which has no direction, stays zero."""
        return _unit(self.coef)

    def decide(self, A: np.ndarray) -> np.ndarray:
        """Return (K, n): True where a sample of `A` (n, m) lies on the positive side."""
        return (self.coef @ A.T + self.intercept[:, None]) > 0


def mean_differences(
    A: np.ndarray, signs: np.ndarray, weights: np.ndarray | None, intercept: bool
) -> Fits:
    """Return the differences of the class means; the threshold lies half-way between them.

    `signs` and `weights` are (K, n): one fit a row, each sample counted by its weight.
    """
    counted = np.ones_like(signs) if weights is None else weights
    shares = [counted * (signs == s) for s in (1, -1)]
    above, below = ((w / w.sum(1, keepdims=True)) @ A for w in shares)
    coef = above - below
    middle = -((above + below) / 2 * coef).sum(1)
    ones = np.ones(len(signs), dtype=int)
    return Fits(
        coef, middle if intercept else np.zeros(len(signs)), ones.astype(bool), ones
    )


def adam(
    A: np.ndarray,
    signs: np.ndarray,
    weights: np.ndarray | None,
    l2: float,
    intercept: bool,
    learning_rate: float,
    steps: int,
) -> Fits:
    """Run the report's schedule for all label vectors at once; Adam treats each entry alone.

    `signs` and `weights` are (K, n) as in `mean_differences`. The number of steps is the fit by
    definition, so it counts as converged wherever it ends.
    """
    samples = torch.from_numpy(A)
    labels = torch.from_numpy(signs.T.copy())
    counted = (
        torch.ones_like(labels)
        if weights is None
        else torch.from_numpy(weights.T.copy())
    )
    counted = counted / counted.sum(0)
    v = torch.zeros(A.shape[1], len(signs), dtype=torch.float64, requires_grad=True)
    b = torch.zeros(len(signs), dtype=torch.float64, requires_grad=intercept)
    optimizer = torch.optim.Adam([v, b] if intercept else [v], lr=learning_rate)
    with torch.enable_grad():
        for _ in range(steps):
            optimizer.zero_grad()
            losses = counted * softplus(-labels * (samples @ v + b))
            (losses.sum() + l2 * v.square().sum()).backward()
            optimizer.step()
    count = len(signs)
    coef = v.detach().numpy().T.copy()
    return Fits(
        coef, b.detach().numpy(), np.ones(count, dtype=bool), np.full(count, steps)
    )


def _unit(coef: np.ndarray) -> np.ndarray:
    largest = np.abs(coef).max(-1, keepdims=True)
    scaled = coef / np.where(largest > 0, largest, 1)
    norm = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.where(norm > 0, norm, 1))
