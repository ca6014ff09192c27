"""How many directions the path of a weight matrix takes, beside what chance gives (row C4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ... import geometry
from ...errors import ArgumentError, check_number, check_whole
from ...figures import Figure, Section
from ...needs import Need, Weights
from ...quantities import Quantity
from ...summary import Names
from ..base import BlockReading, Observable
from .rank_figures import figures, section, statements, symbol

_WINDOWS = 24


@dataclass(frozen=True)
class WeightRank(Observable):
    """Variance rank of the snapshots of every weight matrix, whole run and growing window.

    Beside it four nulls: random walks with the same step lengths, the same increments in random
    order with their permutation p-value, walks with the same increment cosine per lag, and a line
    with noise. And what does tell learning from a walk: net drift ratio, rank and participation
    ratio of the increments, energy of later displacement inside the early components, and the rank
    of what was learned, W_T − W_0, beside that of a Gaussian matrix.

    Parameters
    ----------
    blocks
        Glob or globs over parameter names; matrices only.
    variance
        Share of the variance that the rank is to hold.
    draws
        Draws of each null for the whole run (a quarter of them for each growing window).
    max_snapshots
        Snapshots that ranks and nulls are taken of; where there are more, so many are taken at even
        distance. Ranks depend on their number, so it is reported.
    random_state
        Seed of the nulls.

    Examples
    --------
    >>> WeightRank("**.q_proj.weight").over_blocks
    True
    """

    blocks: str | tuple[str, ...] = "**.weight"
    variance: float = 0.9
    draws: int = 200
    max_snapshots: int = 500
    random_state: int = 0

    kind: ClassVar[str] = "weight-rank"
    version: ClassVar[int] = 2
    role: ClassVar[str] = "motion"
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(
            "displacement",
            "distance travelled from the first checkpoint",
            units="weight units",
            noise="exact",
            series="block",
            caption="‖w_t − w_0‖ of every matrix.",
        ),
        Quantity(
            "module_distance",
            "distance of a module's matrices to the last step",
            units="weight units",
            noise="exact",
            relative_to="last",
            rows="{layer} · weights",
            subject=None,
            figure=False,
        ),
    )
    variables: ClassVar[Names] = {
        "to_last": ("distance to the last step", "weight units"),
        "dimension": ("entries of the matrix", "entries"),
        "masked_rows": ("rows of no token, left out", "rows"),
        "snapshots": ("snapshots used", "snapshots"),
        "variance_rank": ("variance rank", "directions"),
        "learned_rank": ("variance rank of the learned difference", "directions"),
        "gaussian_rank": ("variance rank of a Gaussian matrix", "directions"),
        "net_drift_ratio": ("squared net drift over squared increments", "1"),
        "increment_rank": ("variance rank of the increments", "directions"),
        "increment_participation_ratio": ("participation ratio of the increments", "directions"),
        "walk_participation_ratio": ("participation ratio of a random walk", "directions"),
        "early": ("energy early in the path, shuffled increments", "1"),
        "early_energy": ("energy early in the path", "1"),
        "p_early": ("p-value of the early energy", "1"),
        "p_early_corrected": ("p-value of the early energy, corrected", "1"),
        "p_lower": ("p-value of a lower variance rank", "1"),
        "p_corrected": ("p-value of a lower variance rank, corrected", "1"),
        "walk": ("variance rank of random walks", "directions"),
        "shuffled": ("variance rank of shuffled increments", "directions"),
        "shuffled_mean": ("variance rank of shuffled increments, mean", "directions"),
        "lag": ("variance rank of walks with the same lag cosines", "directions"),
        "line": ("variance rank of a line with noise", "directions"),
        "growing_rank": ("variance rank of the run so far", "directions"),
        "growing_walk": ("variance rank of random walks so far", "directions"),
        "growing_shuffled": ("variance rank of shuffled increments so far", "directions"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_number("variance", self.variance, 0, 1, above=True)
        check_whole("draws", self.draws, minimum=4)
        check_whole("max_snapshots", self.max_snapshots, minimum=3)

    def needs(self) -> Sequence[Need]:
        """Return the weight blocks."""
        return [Weights(self.blocks)]

    def observe(self, reading: BlockReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return ranks, nulls and displacements of one block."""
        count = len(reading.steps)
        if count < 3:
            raise ArgumentError("a variance rank needs at least 3 snapshots")
        chosen = np.linspace(0, count - 1, min(count, self.max_snapshots)).round().astype(int)
        gram, learned = geometry.SnapshotGram(len(chosen)), _Learned(reading.shape)
        moved, left = np.zeros(count), np.zeros(count)
        for chunk in reading.chunks():
            moved += np.sum((chunk - chunk[0]) ** 2, axis=1)
            left += np.sum((chunk - chunk[-1]) ** 2, axis=1)
            gram.add(chunk[chosen])
            learned.add(chunk[-1] - chunk[0])
        matrix, dimension = gram.gram, gram.dimension
        result = xr.Dataset(
            {
                "displacement": ("step", np.sqrt(moved)),
                "to_last": ("step", np.sqrt(left)),
                "dimension": dimension,
                "masked_rows": reading.masked_rows,
                "snapshots": len(chosen),
                "learned_rank": learned.rank(self.variance),
                "gaussian_rank": geometry.gaussian_matrix_rank(*learned.shape, self.variance),
                **self._separating(matrix, dimension),
            },
            coords={"step": reading.steps},
        )
        whole, growing = self._ranks(matrix, dimension)
        at = chosen[growing["ends"] - 1]
        return result.assign(whole).assign(
            {name: ("step", _placed(count, at, growing[name])) for name in _GROWING}
        )

    def _separating(self, matrix: np.ndarray, dimension: int) -> dict[str, float]:
        """Return the statistics of the path that differ between learning and a random walk."""
        early = geometry.early_energy_null(
            gram=matrix, n=self.draws, random_state=self.random_state
        )
        return {
            "net_drift_ratio": geometry.net_drift_ratio(matrix),
            "increment_rank": geometry.increment_variance_rank(matrix, self.variance),
            "increment_participation_ratio": geometry.increment_participation_ratio(matrix),
            "walk_participation_ratio": geometry.walk_participation_ratio(matrix, dimension),
            "early_energy": float(early.observed),
            "early_low": float(early.interval[0]),
            "early_high": float(early.interval[1]),
            "p_early": float(early.p_higher),
        }

    def derive(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Correct the p-values over blocks; add means by kind, and the distances of modules."""
        kinds = [_kind(str(block)) for block in data.block.values]
        data = data.assign(
            p_corrected=("block", _corrected(data.p_lower.values)),
            p_early_corrected=("block", _corrected(data.p_early.values)),
        )
        by_kind = data[list(_GROWING)].assign_coords(block=kinds).groupby("block").mean()
        # Only the windows that were ranked: a line through the steps between them would be broken.
        by_kind = by_kind.dropna("step", how="all").rename(block="kind", step="step_")
        by_kind.step_.attrs.update(long_name="last step of the run so far", units="steps")
        data = data.assign({f"{name}_by_kind": by_kind[name] for name in _GROWING})
        data = data.assign(module_distance=_by_module(data.to_last))
        data.variance_rank.attrs.update(symbol=symbol(self.variance))
        return data

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Figure]:
        """Return the ranks beside their nulls, and what separates learning from a walk."""
        return figures(self.variance)

    def words(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[str]:
        """Return what the ranks, the early components and the learned matrices show."""
        return statements(data, self.variance)

    @property
    def section(self) -> Section:  # type: ignore[override]
        """Heading and margin notes, which name the share of the variance."""
        return section(self.variance)

    def _ranks(
        self, matrix: np.ndarray, dimension: int
    ) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        options: dict[str, Any] = {"gram": matrix, "variance": self.variance}
        seed = self.random_state
        walk = geometry.random_walk_null(
            n=self.draws, random_state=seed, dimension=dimension, **options
        )
        shuffled = geometry.shuffled_increments_null(n=self.draws, random_state=seed, **options)
        lag, line = (
            null_of(n=self.draws, random_state=seed, dimension=dimension, **options)
            for null_of in (geometry.lag_cosine_null, geometry.line_noise_null)
        )
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
            "shuffled_mean": float(shuffled.mean),
            "lag_low": float(lag.interval[0]),
            "lag_high": float(lag.interval[1]),
            "line_low": float(line.interval[0]),
            "line_high": float(line.interval[1]),
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


_GROWING = (
    "growing_rank",
    "growing_walk_low",
    "growing_walk_high",
    "growing_shuffled_low",
    "growing_shuffled_high",
)


class _Learned:
    """Singular values of W_T − W_0, from its rows, by the smaller of its two Gram matrices."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = (shape[0], int(np.prod(shape[1:])))
        self._rows: list[np.ndarray] = []
        self._gram: np.ndarray | float = 0.0

    def add(self, difference: np.ndarray) -> None:
        """Take the next rows, flattened."""
        rows = difference.reshape(-1, self.shape[1])
        if self.shape[1] <= self.shape[0]:
            self._gram = self._gram + rows.T @ rows
        else:
            self._rows.append(rows)

    def rank(self, variance: float) -> int:
        """Return how many singular directions hold `variance` of the squared norm."""
        if self._rows:
            whole = np.concatenate(self._rows)
            self._gram = whole @ whole.T
        values = np.linalg.eigvalsh(self._gram)
        return geometry.singular_value_rank(
            spectrum=np.sqrt(np.maximum(values, 0.0)), variance=variance
        )


def _by_module(to_last: xr.DataArray) -> xr.DataArray:
    """Return the distance of all matrices of a module together, (layer, step)."""
    modules = [str(block).rsplit(".", 2)[0] for block in to_last.block.values]
    squares = (to_last**2).assign_coords(block=modules).groupby("block").sum(skipna=False)
    order = [m for m in dict.fromkeys(modules) if m in set(squares.block.values)]
    distance = (squares**0.5).sel(block=order).rename(block="layer")
    return distance.transpose("layer", "step")


def _placed(count: int, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return `values` at the last step of each window, NaN elsewhere."""
    result = np.full(count, np.nan)
    result[positions] = values
    return result


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
