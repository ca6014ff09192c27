"""The loop of all iterative solvers, and the stopping rule of those that lower an objective."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

Step = TypeVar("Step")


def iterate(
    steps: Iterator[Step], finished: Callable[[Step], bool], max_iter: int
) -> tuple[Step, int, bool]:
    """Take `steps` until one is `finished`, but at most `max_iter` of them.

    Returns
    -------
    step
        The last one taken.
    n_iter
        How many were taken.
    converged
        Whether the last one was `finished`.

    Examples
    --------
    >>> halves = (0.5**k for k in range(100))
    >>> iterate(halves, lambda x: x < 0.2, max_iter=50)
    (0.125, 4, True)
    """
    for count, step in enumerate(islice(steps, max_iter), 1):
        if finished(step):
            return step, count, True
    return step, count, False


class Stalled:
    """Whether an objective fell by no more than `tol` of itself within `window` iterations.

    A fall below `noise` counts as none. An infinite objective stands for a rejected step: it never
    ends the iteration, and leaves what is known of earlier ones.

    Examples
    --------
    >>> stalled = Stalled(tol=0.1)
    >>> [stalled(objective) for objective in (4.0, 2.0, 1.9)]
    [False, False, True]
    """

    def __init__(self, tol: float, window: int = 1, noise: float = -math.inf) -> None:
        self.tol = tol
        self.noise = noise
        self._history = deque([math.inf] * window, maxlen=window)

    def __call__(self, objective: float) -> bool:
        """Take note of the objective of the next iteration, and say whether it was the last."""
        before = self._history[0]
        accepted = math.isfinite(objective)
        self._history.append(objective if accepted else before)
        return accepted and before - objective <= max(self.tol * objective, self.noise)
