"""At which steps a recorder writes a checkpoint."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from ..errors import ArgumentError, check_whole
from .selection import check_step

Every: TypeAlias = str | int | Iterable[int] | Callable[[int], bool]

_COUNT = 32  # at most, of a run of known length
# Steps that are listed at most: a stranger's note may ask for any number.
_LISTED = 10**7
_LAST_POWER = 512  # of a run of unknown length, as in the Pythia suite
_EVEN = 1000


@dataclass(frozen=True)
class Schedule:
    """The steps that are due; step 0 always is.

    Parameters
    ----------
    every
        ``"log"``: powers of two early, evenly spaced late. With `total` the two meet where their
        spacing does: the closest that gives at most 32 checkpoints, the last step among them.
        Without it 1, 2, 4, ..., 512 and then every 1,000. An integer: every so many steps.
        A tuple: these steps. A function: asked at every step.
    total
        Number of steps of the run, where known.

    Examples
    --------
    >>> (
    ...     Schedule("log", 8).planned(8),
    ...     Schedule(50).planned(120),
    ...     Schedule((3, 5)).planned(4),
    ... )
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
            return cls(
                tuple(sorted({check_step("every", step) for step in every})), total
            )
        if check_step("every", every) < 1:
            raise ArgumentError(f"every must be at least 1; got {every}.")
        return cls(int(every), total)

    def due(self, step: int) -> bool:
        """Return whether a checkpoint is due at `step`."""
        if callable(self.every):
            return step == 0 or bool(self.every(step))
        return any(step in part for part in self._parts(step))

    def planned(self, last: int) -> tuple[int, ...] | None:
        """Return the steps due up to `last`, or None where only a function or too many are."""
        if callable(self.every):
            return None
        parts = self._parts(last)
        if any(len(part) > _LISTED for part in parts):
            return None
        steps = set(chain.from_iterable(parts))
        return tuple(sorted(step for step in steps if step <= last))

    def _parts(self, last: int) -> list[Sequence[int]]:
        """Return the steps that are due, at least those up to `last`."""
        assert not callable(self.every)
        if isinstance(self.every, int):
            return [range(0, last + 1, self.every)]
        if isinstance(self.every, tuple):
            return [(0,), self.every]
        if self.total is None:
            return [(0,), _powers(_LAST_POWER), range(_EVEN, last + 1, _EVEN)]
        spacing = _spacing(self.total, _COUNT)
        return [_powers(spacing - 1), range(0, last + 1, spacing), (self.total,)]

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


def log_steps(total: int, count: int = _COUNT) -> tuple[int, ...]:
    """Return the steps of ``"log"`` for a run of `total` steps: at most `count` of them.

    Parameters
    ----------
    total
        Number of steps of the run, at least 1.
    count
        At most so many checkpoints, at least 4.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> log_steps(100, 12)
    (0, 1, 2, 4, 8, 15, 30, 45, 60, 75, 90, 100)
    """
    check_whole("total", total)
    spacing = _spacing(total, check_whole("count", count, 4))
    return tuple(sorted({*_powers(spacing - 1), *range(0, total + 1, spacing), total}))


def _powers(last: int) -> list[int]:
    """Return the powers of two up to `last`."""
    return [1 << k for k in range(last.bit_length())]


@functools.lru_cache(maxsize=64)
def _spacing(total: int, count: int) -> int:
    """Return the smallest spacing with which 0, powers of two and even steps are few enough."""
    if total < count:
        return 1
    for early in range(count - 1):  # powers of two below the spacing
        spacing = max(
            math.ceil(total / (count - 1 - early)), (1 << early - 1) + 1 if early else 1
        )
        if spacing <= 1 << early:
            return spacing
    return total  # of which there are more powers of two than `count`
