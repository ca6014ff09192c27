"""When something formed in a run: rows of the chart over seeds, beside their turned controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError

from ..formats import listed, short
from ..verdicts import Runs, decided


class Compared(NamedTuple):
    """Whether two formations coincide, in words and as a share by chance."""

    holds: bool | None
    measured: str
    chance: float


@dataclass(frozen=True)
class Formation:
    """One row of the chart in every seed: its change, when half of it was done, its controls.

    Parameters
    ----------
    step, low, high
        Half-change step of each seed and its 95 % interval, (seeds,); NaN where there is none.
    first, last
        Value at the first and the last step, (seeds,).
    control_last
        Value of each control run at its last step, (seeds, runs).
    beyond
        Whether the change is more than that of the control runs, (seeds,).
    end
        Last step of the run.
    """

    step: np.ndarray
    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    last: np.ndarray
    control_last: np.ndarray
    beyond: np.ndarray
    end: float

    @classmethod
    def of(cls, runs: Runs, row: str, layer: str | None = None) -> Formation:
        """Return a row of the same node of each seed's study.

        Parameters
        ----------
        runs
            The node of each seed, with control runs.
        row
            What the row is called without its layer, such as ``"induction head"``; of several the
            one that changed most is meant.
        layer
            Its layer; any by default.

        Raises
        ------
        ArgumentError
            If a node has no such row.
        """
        rows = [_row(run, row, layer) for run in runs]

        def each(name: str) -> np.ndarray:
            return np.stack([np.asarray(one[name].values, dtype=float) for one in rows])

        return cls(
            each("half_step"),
            each("half_step_low"),
            each("half_step_high"),
            each("first_value"),
            each("last_value"),
            each("control_last"),
            each("beyond").astype(bool),
            float(runs[0].step.values[-1]),
        )

    @property
    def steps(self) -> str:
        """The half-change step of each seed with its interval: ``"158 (140–160) and ..."``."""
        if len(self.step) > 2:
            return listed(self.step)
        return " and ".join(
            f"{step:,.0f} ({low:,.0f}–{high:,.0f})" if np.isfinite(step) else "never"
            for step, low, high in zip(self.step, self.low, self.high, strict=True)
        )

    @property
    def change(self) -> str:
        """The first and last values in words."""
        return f"from {short(self.first)} to {short(self.last)}"

    @property
    def controls(self) -> str:
        """What the control runs end at, and in how many seeds the run goes beyond them."""
        return (
            f"turned runs end at {short(self.control_last.ravel())}; the change is beyond theirs "
            f"in {int(self.beyond.sum())} of {len(self.beyond)} seeds"
        )

    def coincides(self, other: Formation) -> Compared:
        """Return whether the intervals of two formations overlap in every seed.

        The chance is that of the same intervals, each at a random place of the logarithm of the
        steps, to overlap in every seed.
        """
        ends = (self.low, self.high, other.low, other.high)
        is_finite = bool(np.isfinite(np.stack(ends)).all())
        measured = f"{self.steps} against {other.steps}"
        if not is_finite:
            return Compared(None, measured, np.nan)
        meet = (self.low <= other.high) & (other.low <= self.high)
        holds = decided(meet.all(), not meet.any())
        widths = [np.log1p(high) - np.log1p(low) for low, high in (ends[:2], ends[2:])]
        chance = np.minimum(1.0, sum(widths) / np.log1p(self.end))
        return Compared(holds, measured, float(chance.prod()))

    def precedes(self, other: Formation) -> bool | None:
        """Return whether this began no later in every seed; None where seeds differ."""
        ends = np.stack([self.low, self.high, other.low, other.high])
        if not np.isfinite(ends).all():
            return None
        before = self.low <= other.high
        return decided(before.all(), not before.any())


def _row(node: xr.Dataset, row: str, layer: str | None) -> xr.Dataset:
    names = [str(name) for name in node.row_name.values]
    layers = [str(path) for path in node.row_layer.values]
    named = enumerate(zip(names, layers, strict=True))
    places = [i for i, (n, at) in named if n == row and layer in (None, at)]
    if not places:
        known = ", ".join(dict.fromkeys(names))
        raise ArgumentError(f"row must be one of {known}; got {row!r}.")
    ones = [node.isel(row=i) for i in places]
    return max(ones, key=lambda one: abs(float(one.last_value - one.first_value)))
