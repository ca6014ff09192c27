"""Since when tokens are predicted for good, and which texts show it."""

from __future__ import annotations

import math

import numpy as np

from ...characters import without_bytes
from ..concepts.tokens import Pieces

TEXTS = 2
GAIN = math.log(2)  # nats: twice as likely as by its frequency
LATER = 2  # checkpoints after the first one at which it holds as well


def dates(
    steps: np.ndarray, losses: np.ndarray, costs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return since when tokens are predicted for good, and whether that is seen often enough.

    Parameters
    ----------
    steps
        (T,) training steps, increasing.
    losses
        (T, n) loss of each token in nats; a step that lacks one is left out.
    costs
        (n,) loss of each token by token frequencies.

    Returns
    -------
    step, lasts
        The first step from which on the loss is at least log 2 below `costs` at every later one,
        NaN where it is not so at the last one; and whether at least two later ones were read.

    Examples
    --------
    >>> step, lasts = dates(
    ...     np.array([1, 2, 4, 8]), np.array([[9.0], [1], [1], [1]]), np.full(1, 5)
    ... )
    >>> step.tolist(), lasts.tolist()
    ([2.0], [True])
    """
    read = np.asarray(np.isfinite(losses).all(axis=1))
    steps = steps[read]
    holds = losses[read] <= costs - GAIN
    trailing = np.logical_and.accumulate(holds[::-1], axis=0).sum(axis=0)
    begin = np.minimum(len(steps) - trailing, len(steps) - 1)
    return np.where(trailing > 0, steps[begin].astype(float), np.nan), np.asarray(
        trailing > LATER
    )


def chosen(
    pieces: Pieces, ids: np.ndarray, predicted: np.ndarray, count: int = TEXTS
) -> np.ndarray:
    """Return the rows of the `count` texts with most predicted tokens that hold letters, in order.

    Bytes that are no whole character are no letters.
    """
    words = [
        i
        for i, piece in pieces.by_id.items()
        if any(map(str.isalpha, without_bytes(piece)))
    ]
    counts = np.asarray(np.isin(ids, words) & predicted).sum(axis=1)
    some = np.asarray(predicted.any(axis=1))
    best = np.argsort(-np.where(some, counts, -1), kind="stable")[:count]
    return np.sort(best[some[best]])
