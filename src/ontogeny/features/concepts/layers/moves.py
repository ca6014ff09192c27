"""The first layer in which each concept is readable, and whether it moves over the steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEVEL = 0.05  # of the order of the steps, for each concept
LEAST = 1.0  # layers that a concept moves at least
FEWEST = 6  # steps at which it is readable, below which nothing is said


def first_layers(readable: np.ndarray, limit: float) -> np.ndarray:
    """Return the first layer (..., r) in which codes are readable (..., L, r); L where in none.

    Examples
    --------
    >>> first_layers(np.array([[0.2, 0.9, 0.1], [0.7, 0.9, 0.2]]), 0.6)
    array([1., 0., 2.])
    """
    enough = readable >= limit
    return np.where(enough.any(axis=-2), enough.argmax(axis=-2), readable.shape[-2]).astype(float)


class Moves(NamedTuple):
    """Which concepts move through the layers.

    `direction` (r,) is -1 where one moves to earlier layers, 1 to later ones: by one layer at
    least, with a trend that few orders of the steps give (5 %); 0 where no move is shown. `chance`
    is how many would move, one way or the other, with the steps of each in another order.
    """

    direction: np.ndarray
    chance: float


def layer_moves(first: np.ndarray, n_draws: int = 200, seed: int = 0) -> Moves:
    """Return which concepts move, from first layers (T, r) at each step; NaN where not readable.

    Examples
    --------
    >>> first = np.array([[3.0, 3, 2, 2, 1, 1, 1, 1, 1], [2] * 9]).T
    >>> layer_moves(first).direction
    array([-1,  0])
    """
    rng, chance = np.random.default_rng(seed), 0.0
    direction = np.zeros(first.shape[1], dtype=int)
    for j, values in enumerate(first.T):
        curve = values[np.isfinite(values)]
        if len(curve) < FEWEST:
            continue
        permuted = rng.permuted(np.tile(curve, (n_draws, 1)), axis=1)
        orders, third = np.concatenate([curve[None], permuted]), len(curve) // 3
        trend = np.abs(orders @ (np.arange(len(curve)) - (len(curve) - 1) / 2))
        p = (trend[None] >= trend[:, None] - 1e-9).mean(axis=1)  # of each order among all of them
        change = orders[:, -third:].mean(axis=1) - orders[:, :third].mean(axis=1)
        moves = (p <= LEVEL) & (np.abs(change) >= LEAST)
        chance += float(moves[1:].mean())
        direction[j] = np.sign(change[0]) * moves[0]
    return Moves(direction, chance)
