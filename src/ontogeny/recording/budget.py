"""How much of a training's time observing may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Budget:
    """Keeps the time of observing below a share of the training's own time.

    The first observation is always made: what one costs is known only afterwards. Another is made
    when the training has taken so long that the next, at the largest cost so far, stays within
    `share`. The first one, which warms up, counts as that only until there is a second.

    Parameters
    ----------
    share
        Above 0 and at most 1.
    now
        The clock, in seconds.

    Examples
    --------
    >>> clock = iter([0.0, 0.0, 1.0, 5.0, 41.0])
    >>> budget = Budget(0.05, now=lambda: next(clock))
    >>> with budget.spent():  # takes 1 s
    ...     pass
    >>> budget.allows(), budget.allows()  # after 4 s and 40 s of training
    (False, True)
    """

    def __init__(self, share: float, now: Callable[[], float] = time.perf_counter) -> None:
        self.share, self._now = share, now
        self._begin = now()
        self._costs: list[float] = []

    @property
    def seconds(self) -> float:
        """Time of all observations."""
        return sum(self._costs)

    def allows(self) -> bool:
        """Return whether another observation stays within the budget."""
        training = self._now() - self._begin - self.seconds
        next_one = max(self._costs[1:] or self._costs, default=0.0)
        return not self._costs or self.seconds + next_one <= self.share * training

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Count the time of an observation."""
        begin = self._now()
        try:
            yield
        finally:
            self._costs.append(self._now() - begin)

    @property
    def overhead(self) -> float:
        """Time of observing as a share of the training's own time until now."""
        training = self._now() - self._begin - self.seconds
        return self.seconds / training if training > 0 else 0.0
