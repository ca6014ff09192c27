"""The two windows of Table 2, and whether scores change between them beyond shuffled labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import xarray as xr

from ... import dynamics
from ..evidence import LEVEL

_EARLY, _LATE = (20 / 480, 100 / 480), (380 / 480, 460 / 480)
"""The report's windows, as shares of the whole run."""


def in_windows(scores: xr.DataArray) -> xr.Dataset | None:
    """Return the regime table of scores (layer, step); None where a window has too few steps."""
    scores = scores.transpose("layer", "step").dropna("step", how="all")
    last = float(scores.step[-1])
    early, late = ((low * last, high * last) for low, high in (_EARLY, _LATE))
    inside = [int(((scores.step >= a) & (scores.step <= b)).sum()) for a, b in (early, late)]
    if min(inside) < 2:
        return None
    return dynamics.regime_table(scores, scores.step.values, early, late)


@dataclass(frozen=True)
class CountOfRises:
    """In how many layers, concepts and seeds something rises from window to window, and by chance.

    Parameters
    ----------
    own, of
        How many rise, of how many.
    null
        How many do of directions for shuffled labels, counted draw by draw, (draws,). Scores rise
        and get noisier with the training whatever a direction stands for, so that a coin is none.
    """

    own: int
    of: int
    null: np.ndarray

    @classmethod
    def of_scores(
        cls,
        runs: Sequence[xr.Dataset],
        concepts: Sequence[str],
        change: Callable[[xr.Dataset], xr.DataArray],
    ) -> Self:
        """Count where `change`, of a regime table, is above 0."""
        pairs = [(run, name) for run in runs for name in concepts]
        own, of = _counted([run.score.sel(concept=name) for run, name in pairs], change)
        draws = range(min(run.sizes["draw"] for run in runs))
        shuffled = [
            [run.random_score.sel(concept=name).isel(draw=draw) for run, name in pairs]
            for draw in draws
        ]
        return cls(own, of, np.array([_counted(scores, change)[0] for scores in shuffled]))

    @property
    def holds(self) -> bool | None:
        """True where it is most of them and more than by chance, False where it is few and fewer.

        Examples
        --------
        >>> null = np.arange(5, 14).repeat(3)
        >>> [CountOfRises(own, 18, null).holds for own in (18, 11, 4)]
        [True, None, False]
        """
        more, fewer = (
            bool((1 + np.sum(beyond)) / (1 + len(self.null)) <= LEVEL)
            for beyond in (self.null >= self.own, self.null <= self.own)
        )
        if self.of and more and self.own > self.of / 2:
            return True
        return False if self.of and fewer and self.own < self.of / 2 else None

    @property
    def beside(self) -> str:
        """What directions for shuffled labels give, in words."""
        middle, low, high = np.median(self.null), self.null.min(), self.null.max()
        draws = f"{low} to {high} in {len(self.null)} draws"
        return f"directions for shuffled labels give {middle:.0f} of them ({draws})"


def _counted(
    scores: Sequence[xr.DataArray], change: Callable[[xr.Dataset], xr.DataArray]
) -> tuple[int, int]:
    """Return how many changes are above 0, of how many."""
    tables = [table for each in scores if (table := in_windows(each)) is not None]
    found = [change(table) for table in tables]
    return sum(int((x > 0).sum()) for x in found), sum(int(x.notnull().sum()) for x in found)
