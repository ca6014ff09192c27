"""The two windows of Table 2, and whether scores change between them beyond shuffled labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import xarray as xr

from ontogeny import dynamics

from ..verdicts import LEVEL, Runs

_EARLY = (20 / 480, 100 / 480)
_LATE = (380 / 480, 460 / 480)
"""The report's windows, as shares of the whole run."""


def in_windows(scores: xr.DataArray) -> xr.Dataset | None:
    """Return means' ``difference`` and both deviations, late minus early, of scores (..., step).

    Over all dimensions but the step; None where a window has too few steps.

    Examples
    --------
    >>> steps = np.arange(0, 481, 20)
    >>> rising = xr.DataArray([steps / 480.0], {"step": steps}, ("layer", "step"))
    >>> in_windows(rising).difference.values.round(3)
    array([0.75])
    """
    scores = scores.dropna("step", how="all")
    last = float(scores.step[-1])
    early, late = ((low * last, high * last) for low, high in (_EARLY, _LATE))
    inside = [
        int(((scores.step >= a) & (scores.step <= b)).sum()) for a, b in (early, late)
    ]
    if min(inside) < 2:
        return None
    scores = scores.transpose(..., "step")
    rows = scores.values.reshape(-1, scores.sizes["step"])
    table = dynamics.regime_table(rows, scores.step.values, early, late)
    shape = scores.isel(step=0, drop=True)
    names = ("difference", "early_sd", "late_sd")
    return xr.Dataset(
        {n: shape.copy(data=table[n].values.reshape(shape.shape)) for n in names}
    )


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
        runs: Runs,
        concepts: list[str],
        change: Callable[[xr.Dataset], xr.DataArray],
    ) -> Self:
        """Count where `change`, of what `in_windows` returns, is above 0."""
        tables = [
            (in_windows(run.score.sel(concept=concepts)), in_windows(run.random_score))
            for run in runs
        ]
        pairs = [
            (change(scores), change(null)) for scores, null in tables if scores and null
        ]
        draws = min(run.sizes["draw"] for run in runs)
        null = np.zeros(draws, dtype=int)
        for _, shuffled in pairs:
            above = (shuffled.sel(concept=concepts) > 0).isel(draw=slice(draws))
            null += above.sum([d for d in above.dims if d != "draw"]).values
        rises = sum(int((x > 0).sum()) for x, _ in pairs)
        return cls(rises, sum(int(x.notnull().sum()) for x, _ in pairs), null)

    @property
    def holds(self) -> bool | None:
        """True where it is most of them and more than by chance, False where it is few and fewer.

        Examples
        --------
        >>> null = np.arange(5, 14).repeat(3)
        >>> [CountOfRises(count, 18, null).holds for count in (18, 11, 4)]
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
        middle = np.median(self.null)
        low = self.null.min()
        high = self.null.max()
        draws = f"{low} to {high} in {len(self.null)} draws"
        return f"directions for shuffled labels give {middle:.0f} of them ({draws})"
