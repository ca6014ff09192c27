"""How many directions the path of a weight matrix takes, beside what chance gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import geometry
from ontogeny.capture.blocks import kind_of_block
from ontogeny.errors import ArgumentError, check_number
from ontogeny.figures import Section
from ontogeny.needs import Need, Weights
from ontogeny.observables import BlockReading, Observable, PresetEntry
from ontogeny.quantities import Quantity
from ontogeny.summary import NumberTable
from ontogeny.trees import Nodes

from ..dynamics.false_discovery import false_discovery
from ..geometry.nulls import NullDistribution
from ..geometry.snapshots import SnapshotGram
from .weight_rank_figures import CHARTS, section, separating, statements, symbol

_WINDOWS = 24


@dataclass(frozen=True)
class WeightRank(Observable):
    """Variance rank of the snapshots of every weight matrix, whole run and growing window.

    Beside it four nulls: random walks with the same step lengths, the path's directions in random
    order with step lengths at their place and a permutation p-value, walks with the same increment
    cosine per lag, and a line with noise. And what distinguishes learning from a walk: net drift
    ratio, rank and participation ratio of the increments, energy of later displacement inside the
    early components, and the rank of what was learned, W_T − W_0, beside that of a Gaussian matrix.

    Parameters
    ----------
    blocks
        Glob or globs over parameter names; matrices only.
    variance
        Share of the variance that the rank is to hold.
    n_draws
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
    n_draws: int = 200
    max_snapshots: int = 500
    random_state: int = 0

    kind = "weight-rank"
    minima = {"n_draws": 4, "max_snapshots": 3}
    question = "In how few directions does each weight matrix move over the run?"
    requires = "weights alone"
    price = "each matrix of all steps, once"
    fewest_steps = 3
    obstacles = ("no_matrices",)
    presets = (
        PresetEntry(("standard", "weights", "everything"), {"blocks": "$blocks"}, 170),
    )
    role = "motion"
    quantities = (
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
            "distance of a module's matrices to the last {checkpoint}",
            units="weight units",
            noise="exact",
            relative_to="last",
            rows="{layer} · weights",
            figure=False,
        ),
    )
    variables = {
        "to_last": ("distance to the last {checkpoint}", "weight units"),
        "dimension": ("entries of the matrix", "entries"),
        "masked_rows": ("rows of no token, left out", "rows"),
        "variance_rank": ("variance rank", "directions"),
        "early": ("energy early in the path, directions in random order", "1"),
        "p_early": ("p-value of the early energy", "1"),
        "p_early_corrected": ("p-value of the early energy, corrected", "1"),
        "p_lower": ("p-value of a lower variance rank", "1"),
        "p_corrected": ("p-value of a lower variance rank, corrected", "1"),
        "walk": ("variance rank of random walks", "directions"),
        "shuffled": ("variance rank of directions in random order", "directions"),
        "shuffled_mean": (
            "variance rank of directions in random order, mean",
            "directions",
        ),
        "lag": ("variance rank of walks with the same lag cosines", "directions"),
        "line": ("variance rank of a line with noise", "directions"),
        "growing_rank": ("variance rank of the run so far", "directions"),
        "growing_walk": ("variance rank of random walks so far", "directions"),
        "growing_shuffled": (
            "variance rank of directions in random order so far",
            "directions",
        ),
    }
    charts = CHARTS

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_number("variance", self.variance, 0, 1, above=True)

    def needs(self) -> Sequence[Need]:
        """Return the weight blocks."""
        return [Weights(self.blocks)]

    def observe(self, reading: BlockReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return ranks, nulls and displacements of one block."""
        count = len(reading.steps)
        if count < 3:
            raise ArgumentError("a variance rank needs at least 3 snapshots")
        places = (
            np.linspace(0, count - 1, min(count, self.max_snapshots))
            .round()
            .astype(int)
        )
        gram = SnapshotGram(len(places))
        learned = _Learned(reading.shape)
        moved = np.zeros(count)
        to_last = np.zeros(count)
        for chunk in reading.chunks():
            moved += np.sum((chunk - chunk[0]) ** 2, axis=1)
            to_last += np.sum((chunk - chunk[-1]) ** 2, axis=1)
            gram.add(chunk[places])
            learned.add(chunk[-1] - chunk[0])
        matrix = gram.gram
        dimension = gram.dimension
        series = {"displacement": np.sqrt(moved), "to_last": np.sqrt(to_last)}
        for name, values in self._growing(matrix, dimension).items():
            series[name] = np.full(count, np.nan)
            series[name][places[self._ends(len(matrix)) - 1]] = values
        return xr.Dataset(
            {
                **{name: ("step", values) for name, values in series.items()},
                "dimension": dimension,
                "masked_rows": reading.masked_rows,
                "snapshots": len(places),
                "learned_rank": learned.rank(self.variance),
                "gaussian_rank": geometry.gaussian_matrix_rank(
                    *learned.shape, self.variance
                ),
                **self._separating(matrix, dimension),
                **self._ranks(matrix, dimension),
            },
            coords={"step": reading.steps},
        )

    def _separating(self, matrix: np.ndarray, dimension: int) -> dict[str, Any]:
        """Return the statistics of the path that differ between learning and a random walk."""
        seed = self.random_state
        early = geometry.early_energy_null(
            gram=matrix, n_draws=self.n_draws, random_state=seed
        )
        return {
            "net_drift_ratio": geometry.net_drift_ratio(matrix),
            "increment_rank": geometry.increment_variance_rank(matrix, self.variance),
            "increment_participation_ratio": geometry.increment_participation_ratio(
                matrix
            ),
            "walk_participation_ratio": geometry.walk_participation_ratio(
                matrix, dimension
            ),
            "early_energy": float(early.observed),
            "p_early": float(early.p_higher),
            **_intervals(early=early),
        }

    def _ranks(self, matrix: np.ndarray, dimension: int) -> dict[str, Any]:
        """Return the rank of the whole run, and what its nulls give."""
        options = self._options(matrix, self.n_draws)
        walk = geometry.random_walk_null(dimension=dimension, **options)
        shuffled = geometry.shuffled_increments_null(**options)
        lag = geometry.lag_cosine_null(dimension=dimension, **options)
        line = geometry.line_noise_null(dimension=dimension, **options)
        return {
            "variance_rank": float(walk.observed),
            "shuffled_mean": float(shuffled.mean),
            "p_lower": float(shuffled.p_lower),
            **_intervals(walk=walk, shuffled=shuffled, lag=lag, line=line),
        }

    def _growing(self, matrix: np.ndarray, dimension: int) -> dict[str, np.ndarray]:
        """Return the ranks of growing windows, and what their nulls give, over the windows."""
        options = self._options(matrix, max(1, self.n_draws // 4))
        options["ends"] = self._ends(len(matrix)).tolist()
        walks = geometry.random_walk_null(dimension=dimension, **options)
        shuffles = geometry.shuffled_increments_null(**options)
        return {
            "growing_rank": walks.observed.astype(float),
            **_intervals(growing_walk=walks, growing_shuffled=shuffles),
        }

    def _options(self, matrix: np.ndarray, n_draws: int) -> dict[str, Any]:
        seed = self.random_state
        return {
            "gram": matrix,
            "variance": self.variance,
            "n_draws": n_draws,
            "random_state": seed,
        }

    @staticmethod
    def _ends(count: int) -> np.ndarray:
        """Return the sizes of the growing windows of `count` snapshots."""
        return np.unique(
            np.geomspace(3, count, min(_WINDOWS, count - 2)).round().astype(int)
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Correct the p-values over blocks; add means by kind, and the distances of modules.

        A correction of the family-wise error would ask each matrix for more draws than it has.
        """
        kinds = [kind_of_block(str(block)) for block in data.block.values]
        data = data.assign(
            p_corrected=("block", false_discovery(data.p_lower)),
            p_early_corrected=("block", false_discovery(data.p_early)),
        )
        growing = [name for name in data.data_vars if str(name).startswith("growing_")]
        by_kind = data[growing].assign_coords(block=kinds).groupby("block").mean()
        # Only the windows that were ranked: a line through the steps between them would be broken.
        by_kind = by_kind.dropna("step", how="all").rename(block="kind", step="step_")
        by_kind.step_.attrs.update(
            long_name="last {checkpoint} of the run so far", units="{step}s"
        )
        data = data.assign({f"{name}_by_kind": by_kind[name] for name in growing})
        data = data.assign(module_distance=_by_module(data.to_last))
        data.variance_rank.attrs.update(symbol=symbol(self.variance))
        return data

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return what the ranks, the early components and the learned matrices show."""
        return statements(data, self.variance)

    @property
    def section(self) -> Section:  # type: ignore[override]
        """Heading and margin notes, which name the share of the variance."""
        return section(self.variance)

    @property
    def tables(self) -> Sequence[NumberTable]:  # type: ignore[override]
        """What separates learning from a random walk, whose heads name the share."""
        return [separating(self.variance)]


def _intervals(**nulls: NullDistribution) -> dict[str, Any]:
    """Return the ends of the 95 % interval of every null."""
    return {
        f"{name}_{end}": null.interval[i]
        for name, null in nulls.items()
        for i, end in enumerate(("low", "high"))
    }


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
    squares = (
        (to_last**2).assign_coords(block=modules).groupby("block").sum(skipna=False)
    )
    order = [m for m in dict.fromkeys(modules) if m in set(squares.block.values)]
    distance = (squares**0.5).sel(block=order).rename(block="layer")
    return distance.transpose("layer", "step")
