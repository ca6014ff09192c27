"""The step axis: logarithmic with step 0 set apart, or linear; places lie between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from ..errors import check_choice

ZERO_GAP = 0.09  # share of a logarithmic axis between step 0 and the first later step

END_ROOM = 0.02  # least room beside the first and the last step, as a share of the axis

# Checkpoints up to which the axis names each.
_FEW = 8
_VALUES = 6  # round values on an axis, about

KINDS = ("log", "linear")  # kinds of step axis between which the page switches


@dataclass(frozen=True)
class Tick:
    """A mark on an axis; a lower `rank` is kept first where room is scarce, 9 is never labelled."""

    position: float
    label: str
    rank: int


@dataclass(frozen=True)
class StepScale:
    """Places of training steps on an axis from 0 to 1.

    Parameters
    ----------
    steps
        All steps that the axis must hold, increasing and not negative.
    kind
        ``"log"`` or ``"linear"``.

    Examples
    --------
    >>> StepScale((0, 1, 10, 100), "log").positions([0, 1, 100]).tolist()
    [0.0, 0.09, 1.0]
    >>> StepScale((0, 500), "log").positions([0, 500]).tolist()
    [0.0, 1.0]
    """

    steps: tuple[int, ...]
    kind: str = "log"

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)

    @property
    def breaks_at_zero(self) -> bool:
        """Whether step 0 stands apart from a logarithmic axis."""
        return self.kind == "log" and len(self.steps) > 1 and self.steps[0] <= 0

    def positions(self, steps: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the place of each step; steps outside the axis are placed beyond its ends."""
        values = np.asarray(steps, dtype=float)
        if self.kind == "linear":
            return _rescale(values, self.steps[0], self.steps[-1])
        positive = [s for s in self.steps if s > 0]
        if not positive:
            return np.full(values.shape, 0.5)
        start = ZERO_GAP if self.breaks_at_zero else 0.0
        # Interpolated values (a half-step) may lie between 0 and the first recorded step.
        logs = np.log(np.maximum(values, positive[0]))
        low, high = math.log(positive[0]), math.log(positive[-1])
        # One step alone stands in the middle, and at the end where 0 is before it.
        share = _rescale(logs, low, high) if high > low or not start else 1.0
        places = start + (1 - start) * share
        return np.where(
            values < positive[0], np.clip(values / positive[0], 0, 1) * start, places
        )

    def edges(self, steps: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the left and right edge of each step's cell, shape (n, 2)."""
        centres = self.positions(steps)
        apart = self.breaks_at_zero and len(centres) > 1 and steps[0] <= 0
        if apart:
            rest = _cell_edges(centres[1:])
            rest[0, 0] = max(rest[0, 0], ZERO_GAP * 0.55)
            return np.concatenate([np.array([[-ZERO_GAP * 0.3, ZERO_GAP * 0.3]]), rest])
        if len(self.steps) == 1:
            return np.tile([[0.1, 0.9]], (len(centres), 1))
        return _cell_edges(centres)

    @cached_property
    def span(self) -> tuple[float, float]:
        """The first and the last place that every drawing on this axis shows: all cells fit."""
        edges = self.edges(self.steps)
        return min(float(edges.min()), -END_ROOM), max(float(edges.max()), 1 + END_ROOM)

    def ticks(self) -> list[Tick]:
        """Return the marks of the axis, most important first at equal places.

        Few checkpoints are named themselves, their ends first.
        """
        if 1 < len(self.steps) <= _FEW:
            ends = (self.steps[0], self.steps[-1])
            return self._place([(step, int(step not in ends)) for step in self.steps])
        if self.kind == "linear" or self.steps[-1] <= 0:
            return self._place(_round_values(self.steps[0], self.steps[-1]))
        first = next(s for s in self.steps if s > 0)
        marks = _decade_values(first, self.steps[-1])
        if sum(rank < 9 for _, rank in marks) < 2:
            marks = _round_values(first, self.steps[-1])
        if self.steps[0] <= 0:
            marks.insert(0, (0, 0))
        return self._place(marks)

    def _place(self, marks: Sequence[tuple[int, int]]) -> list[Tick]:
        places = self.positions([value for value, _ in marks])
        return [
            Tick(float(place), f"{value:,}", rank)
            for (value, rank), place in zip(marks, places, strict=True)
        ]


def _rescale(values: np.ndarray, low: float, high: float) -> np.ndarray:
    if high <= low:
        return np.full(values.shape, 0.5)
    return (values - low) / (high - low)


def _cell_edges(centres: np.ndarray) -> np.ndarray:
    """Cells that meet half-way between their centres; the outer ones are symmetric."""
    if len(centres) == 1:
        return np.array([[centres[0] - 0.04, centres[0] + 0.04]])
    middle = (centres[1:] + centres[:-1]) / 2
    left = np.concatenate([[2 * centres[0] - middle[0]], middle])
    right = np.concatenate([middle, [2 * centres[-1] - middle[-1]]])
    return np.stack([left, right], axis=1)


def _decade_values(first: int, last: int) -> list[tuple[int, int]]:
    """1, 2, ... 9, 10, 20, ... between two steps: powers of ten first, then fives, then twos."""
    ranks = {1: 1, 5: 2, 2: 3}
    powers = range(math.floor(math.log10(first)), math.floor(math.log10(last)) + 1)
    values = [
        (digit * 10**power, ranks.get(digit, 9))
        for power, digit in product(powers, range(1, 10))
    ]
    return [(value, rank) for value, rank in values if first <= value <= last]


def _round_values(low: int, high: int) -> list[tuple[int, int]]:
    if high <= low:
        return [(low, 0)]
    rough = (high - low) / _VALUES
    power = 10 ** math.floor(math.log10(rough))
    size = max(next(m * power for m in (1, 2, 5, 10) if m * power >= rough), 1)
    first = math.ceil(low / size)
    return [
        (round(i * size), i % 2 + 1) for i in range(first, math.floor(high / size) + 1)
    ]


def pick_ticks(
    ticks: Sequence[Tick], length: float, character: float = 6.5
) -> list[Tick]:
    """Return the labelled ticks that fit on an axis of `length` pixels, important ones first."""
    spaced: list[Tick] = []
    for tick in sorted((t for t in ticks if t.rank < 9), key=lambda t: t.rank):
        room = [
            abs(tick.position - other.position) * length
            - (len(tick.label) + len(other.label) + 2) * character / 2
            for other in spaced
        ]
        if min(room, default=0) >= 0:
            spaced.append(tick)
    return sorted(spaced, key=lambda t: t.position)
