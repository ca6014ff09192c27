"""At which steps a recorder writes a checkpoint."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import ArgumentError
from .selection import check_step

__all__ = ["Every", "Schedule"]

Every: TypeAlias = str | int | Iterable[int] | Callable[[int], bool]

_COUNT = 32  # checkpoints of a run of known length
_LAST_POWER, _EVEN = 512, 1000  # of a run of unknown length, as in the Pythia suite


@dataclass(frozen=True)
class Schedule:
    """The steps that are due; step 0 always is.

    Parameters
    ----------
    every
        ``"log"``: powers of two early, evenly spaced late. With `total` the two meet where their
        spacing does, and there are at most 32 checkpoints, the last step among them; without it
        1, 2, 4, ..., 512 and then every 1,000. An integer: every so many steps. A tuple: these
        steps. A function: asked at every step.
    total
        Number of steps of the run, where known.

    Examples
    --------
    >>> Schedule("log", 8).planned(8), Schedule(50).planned(120), Schedule((3, 5)).planned(4)
    ((0, 1, 2, 3, 4, 5, 6, 7, 8), (0, 50, 100), (0, 3))
    """

    every: str | int | tuple[int, ...] | Callable[[int], bool] = "log"
    total: int | None = None

    @classmethod
    def coerce(cls, every: Every, total: int | None = None) -> Schedule:
        """Return the schedule that these arguments mean.

        Raises
        ------
        ArgumentError
            If `every` or `total` is not as described above.
        """
        if total is not None and check_step("total", total) < 1:
            raise ArgumentError(f"total must be at least 1; got {total}.")
        if isinstance(every, str):
            if every != "log":
                raise ArgumentError(
                    "every must be 'log', a number of steps, a list of steps or a function of the "
                    f"step; got {every!r}."
                )
            return cls(every, total)
        if callable(every):
            return cls(every, total)
        if isinstance(every, Iterable):
            steps = {check_step("every", step) for step in every}
            return cls(tuple(sorted(steps)), total)
        if check_step("every", every) < 1:
            raise ArgumentError(f"every must be at least 1; got {every}.")
        return cls(int(every), total)

    def due(self, step: int) -> bool:
        """Return whether a checkpoint is due at `step`."""
        if step == 0:
            return True
        if callable(self.every):
            return bool(self.every(step))
        if isinstance(self.every, int):
            return step % self.every == 0
        if isinstance(self.every, tuple):
            return step in self.every
        return _is_log_step(step) if self.total is None else step in _blend(self.total, step)

    def planned(self, last: int) -> tuple[int, ...] | None:
        """Return the steps due up to `last`, or None where only a function knows them."""
        if callable(self.every):
            return None
        if isinstance(self.every, int):
            return tuple(range(0, last + 1, self.every))
        if isinstance(self.every, tuple):
            return tuple(sorted({0, *(step for step in self.every if step <= last)}))
        if self.total is not None:
            return tuple(step for step in _blend(self.total, last) if step <= last)
        early = [step for step in _powers(_LAST_POWER) if step <= last]
        return (0, *early, *range(_EVEN, last + 1, _EVEN))

    def to_record(self) -> dict[str, Any]:
        """Return the schedule as JSON-ready data."""
        every = "function" if callable(self.every) else self.every
        return {"every": every, "total": self.total}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Schedule | None:
        """Return the schedule of a record, or None where it was a function."""
        every = record["every"]
        if every == "function":
            return None
        return cls.coerce(every, record["total"])


def _is_log_step(step: int) -> bool:
    if step <= _LAST_POWER:
        return step & (step - 1) == 0
    return step % _EVEN == 0


def _powers(limit: float) -> list[int]:
    return list(itertools.takewhile(lambda p: p <= limit, (1 << k for k in itertools.count())))


def _blend(total: int, last: int) -> list[int]:
    """Return 0, powers of two below the even spacing, then even steps to `total` and beyond."""
    if total < _COUNT:
        return list(range(max(total, last) + 1))
    for parts in range(_COUNT, 0, -1):
        spacing = total / parts
        early = _powers(math.nextafter(spacing, 0))
        if 1 + len(early) + parts <= _COUNT:
            break
    even = [round(part * spacing) for part in range(1, math.ceil(last / spacing) + 1)]
    later = even[:parts] + [step for step in even[parts:] if step > total]
    return sorted({0, *early, *later, *([total] if last >= total else [])})
