"""How many directions the path of a weight matrix takes, beside what chance gives (row C4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from .. import geometry
from ..errors import ArgumentError
from ..figures import Band, Curves, NullComparison, Section, attach
from ..needs import Need, Weights
from .base import BlockReading, Observable
from .rows import MEASURABLE, development_rows

__all__ = ["WeightRank"]

_WINDOWS = 24


@dataclass(frozen=True)
class WeightRank(Observable):
    """Variance rank of the snapshots of every weight matrix, whole run and growing window.

    Beside it: random walks with the same step lengths, the same increments in random order with
    their permutation p-value, the net drift ratio and the rank of the increments themselves.

    Parameters
    ----------
    blocks
        Glob or globs over parameter names; matrices only.
    variance
        Share of the variance that the rank is to hold.
    draws
        Draws of each null for the whole run (a quarter of them for each growing window).
    random_state
        Seed of the nulls.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> WeightRank("**.q_proj.weight").over_blocks
    True
    """

    blocks: str | tuple[str, ...] = "**.weight"
    variance: float = 0.9
    draws: int = 200
    random_state: int = 0
    label: str | None = None

    kind: ClassVar[str] = "weight-rank"

    def __post_init__(self) -> None:
        if not 0 < self.variance <= 1:
            raise ArgumentError(f"variance must lie in (0, 1]; got {self.variance}.")
        if self.draws < 4:
            raise ArgumentError(f"draws must be at least 4; got {self.draws}.")

    def needs(self) -> Sequence[Need]:
        """Return the weight blocks."""
        return [Weights(self.blocks)]

    def observe(self, reading: BlockReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return ranks, nulls and displacements of one block."""
        gram = geometry.SnapshotGram(len(reading.steps))
        for chunk in reading.chunks():
            gram.add(chunk)
        matrix, dimension = gram.gram, gram.dimension
        result = xr.Dataset(
            {
                "displacement": ("step", np.sqrt(np.maximum(np.diag(matrix), 0))),
                "to_last": ("step", _distance_to(matrix, -1)),
                "dimension": dimension,
                "masked_rows": reading.masked_rows,
                "snapshots": len(reading.steps),
                "net_drift_ratio": geometry.net_drift_ratio(matrix),
                "increment_rank": geometry.increment_variance_rank(matrix, self.variance),
                "increment_participation_ratio": geometry.increment_participation_ratio(matrix),
            },
            coords={"step": reading.steps},
        )
        if len(reading.steps) < 3:
            raise ArgumentError("a variance rank needs at least 3 snapshots")
        whole, growing = self._ranks(matrix, dimension)
        return result.assign(whole).assign(
            {k: ("step", _at(len(reading.steps), growing["ends"], growing[k])) for k in _GROWING}
        )

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Correct the p-values over blocks; add rows of motion, means by kind, and figures."""
        kinds = [_kind(str(block)) for block in data.block.values]
        data = data.assign(p_corrected=("block", _corrected(data.p_lower.values)))
        by_kind = data[list(_GROWING)].assign_coords(block=kinds).groupby("block").mean()
        data = data.assign(
            {f"{name}_by_kind": by_kind[name].rename(block="kind") for name in _GROWING}
        )
        data = data.assign(self._motion(data))
        data.variance_rank.attrs.update(long_name="variance rank", units="directions", symbol="r₉₀")
        return attach(data, _SECTION, _FIGURES, _statements(data), role="motion")

    def _ranks(
        self, matrix: np.ndarray, dimension: int
    ) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        options: dict[str, Any] = {"gram": matrix, "variance": self.variance}
        seed = self.random_state
        walk = geometry.random_walk_null(
            n=self.draws, random_state=seed, dimension=dimension, **options
        )
        shuffled = geometry.shuffled_increments_null(n=self.draws, random_state=seed, **options)
        ends = np.unique(
            np.geomspace(3, len(matrix), min(_WINDOWS, len(matrix) - 2)).round().astype(int)
        )
        fewer = max(1, self.draws // 4)
        walks = geometry.random_walk_null(
            n=fewer, random_state=seed, dimension=dimension, ends=ends.tolist(), **options
        )
        shuffles = geometry.shuffled_increments_null(
            n=fewer, random_state=seed, ends=ends.tolist(), **options
        )
        whole = {
            "variance_rank": float(walk.observed),
            "walk_low": float(walk.interval[0]),
            "walk_high": float(walk.interval[1]),
            "shuffled_low": float(shuffled.interval[0]),
            "shuffled_high": float(shuffled.interval[1]),
            "p_lower": float(shuffled.p_lower),
        }
        growing = {
            "ends": ends,
            "growing_rank": walks.observed.astype(float),
            "growing_walk_low": walks.interval[0],
            "growing_walk_high": walks.interval[1],
            "growing_shuffled_low": shuffles.interval[0],
            "growing_shuffled_high": shuffles.interval[1],
        }
        return whole, growing

    def _motion(self, data: xr.Dataset) -> dict[str, Any]:
        """Return chart rows of motion: distance of each module's matrices to the last step."""
        modules = [str(b).rsplit(".", 2)[0] for b in data.block.values]
        squares = (data.to_last**2).assign_coords(block=modules).groupby("block").sum(skipna=False)
        distance = np.sqrt(squares).transpose("block", "step")
        order = [m for m in dict.fromkeys(modules) if m in set(distance.block.values)]
        distance = distance.sel(block=order)
        scale = np.nan_to_num(distance.max("step").values)
        return development_rows(
            [f"{module} · weights" for module in order],
            order,
            data.step.values,
            distance.values,
            floor=scale * MEASURABLE,
            reference_index=data.sizes["step"] - 1,
        )


_GROWING = (
    "growing_rank",
    "growing_walk_low",
    "growing_walk_high",
    "growing_shuffled_low",
    "growing_shuffled_high",
)


def _at(count: int, ends: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return `values` placed at the last step of each window, NaN elsewhere."""
    result = np.full(count, np.nan)
    result[ends - 1] = values
    return result


def _distance_to(gram: np.ndarray, i: int) -> np.ndarray:
    diagonal = np.diag(gram)
    return np.sqrt(np.maximum(diagonal + diagonal[i] - 2 * gram[i], 0))


def _corrected(p_values: np.ndarray) -> np.ndarray:
    """Return Benjamini and Hochberg's p-values over the blocks; NaN stays NaN.

    A correction of the family-wise error would ask each matrix for more draws than it has.
    """
    from scipy.stats import false_discovery_control

    corrected = np.full(len(p_values), np.nan)
    known = np.isfinite(p_values)
    if known.any():
        corrected[known] = false_discovery_control(p_values[known])
    return corrected


def _kind(block: str) -> str:
    """Return what a block is: ``q_proj`` of ``layers.0.q_proj.weight``, part of a fused one."""
    name, _, part = block.partition("#")
    parts = [p for p in name.split(".") if not p.isdigit()]
    kind = parts[-2] if len(parts) > 1 else parts[-1]
    return f"{kind}#{part}" if part else kind


def _statements(data: xr.Dataset) -> list[str]:
    rank, count = data.variance_rank.values, data.sizes["block"]
    known = np.isfinite(rank)
    if not known.any():
        return []
    below = int((data.p_corrected.values[known] < 0.05).sum())
    low, high = np.nanmin(rank), np.nanmax(rank)
    walk = float(np.nanmedian((data.walk_low + data.walk_high).values / 2))
    matrices = int(known.sum())
    return [
        (
            f"The variance rank of {matrices} of {count} weight matrices is {low:.0f} to "
            f"{high:.0f}; a random walk with the same step lengths gives about {walk:.0f}."
        ),
        (
            f"In {below} of {matrices} matrices it is lower than the same increments in random "
            "order give (permutation test, false discovery rate 5 %)."
        ),
    ]


_SECTION = Section(
    title="Variance rank of weight trajectories",
    definition="Number of principal components that hold 90 % of the variance of a matrix's "
    "snapshots over training (called effective rank in the paper).",
    symbol="r₉₀ = min{k : Σᵢ≤ₖ λᵢ ≥ 0.9 Σλᵢ}",
    null="Random walks with the same step lengths in as many dimensions, and the same increments "
    "in random order. Shuffling snapshots would change nothing and is no null.",
    care="A random walk in many dimensions has r₉₀ = 6 whatever the number of snapshots, and "
    "fewer with drift: a low rank by itself shows nothing. It depends on the number of snapshots "
    "and their spacing. That weights move says nothing of function by itself.",
    source="Xu 2026, sec. 3.3.1, Fig. 1",
)
_FIGURES = [
    NullComparison(
        "whole-run",
        "Variance rank of the whole run",
        value="variance_rank",
        rows="block",
        bands=[
            Band("walk_low", "walk_high", "random walk"),
            Band("shuffled_low", "shuffled_high", "shuffled increments"),
        ],
        caption="Dots: measured. Bands: 95 % of each null's draws.",
    ),
    Curves(
        "growing",
        "Variance rank of the run so far",
        value="growing_rank_by_kind",
        series=None,
        facet="kind",
        bands=[
            Band("growing_walk_low_by_kind", "growing_walk_high_by_kind", "random walk"),
            Band(
                "growing_shuffled_low_by_kind",
                "growing_shuffled_high_by_kind",
                "shuffled increments",
            ),
        ],
        caption="Mean over the matrices of one kind, from the first checkpoint up to each step.",
    ),
    Curves(
        "displacement",
        "Distance travelled from the first checkpoint",
        value="displacement",
        series="block",
        caption="‖w_t − w_0‖ of every matrix.",
    ),
]
