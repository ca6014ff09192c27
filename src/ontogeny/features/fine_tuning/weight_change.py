"""How far each weight matrix moved from the first checkpoint, and in which directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import xarray as xr

from ...capture.blocks import kind_of_block
from ...claims import Beside, Claim, Subject, measurement
from ...errors import NonFiniteError, check_number
from ...figures import Curves, Section
from ...figures.tables import percent
from ...geometry import effective_rank
from ...needs import Need, Weights
from ...observables import BlockReading, Observable, PresetEntry
from ...quantities import Quantity
from ...summary import NumberTable
from ...trees import Nodes
from .increments import HELD, Base, singular_values

_HELD = percent(HELD)

# Numbers of a matrix that are read at a time.
_CHUNK = 4_000_000


@dataclass(frozen=True)
class WeightChange(Observable):
    """What a further training did to each weight matrix, beside the first checkpoint.

    How far it moved, over how many directions, which share of that lies in the leading directions
    of the first matrix, and how many leading directions came from elsewhere (intruder dimensions).

    Parameters
    ----------
    blocks
        Which matrices: globs over names, or short names such as ``"mlp"`` and ``"q"``.
    n_leading, threshold
        Of the intruder dimensions; see `ontogeny.geometry.intruder_dimensions`.

    Examples
    --------
    >>> WeightChange("mlp").needs()
    [Weights(blocks='mlp')]
    """

    blocks: str | tuple[str, ...] = "**.weight"
    n_leading: int = 10
    threshold: float = 0.5

    kind = "weight-change"
    minima = {"n_leading": 1}
    question = "How far did a further training move each kind of weight matrix?"
    requires = "weights alone"
    price = "three decompositions for each matrix and step"
    fewest_steps = 2
    from_first = True
    obstacles = ("no_matrices",)
    presets = (PresetEntry(("fine-tuning",), {"blocks": "$changed"}, 30),)
    role = "motion"
    quantities = (
        Quantity(
            "relative_change",
            "distance moved from the first checkpoint",
            units="1",
            symbol="‖W_t − W₀‖_F / ‖W₀‖_F",
            noise="exact",
            rows="{kind} · distance moved",
            series="kind",
            caption="As a share of the norm that all matrices of a kind had at the first "
            "checkpoint. A frozen matrix stays at 0.",
        ),
    )
    variables = {
        "distance_moved": ("distance moved from the first checkpoint", "weight units"),
        "size": ("norm at the first checkpoint", "weight units"),
        "effective_rank": ("effective rank of the change", "directions"),
        "leading_share": (
            "share of the change in the first matrix's leading directions",
            "1",
        ),
        "leading_by_kind": (
            "share of the change in the first matrix's leading directions",
            "1",
        ),
        "leading_chance": ("share of leading directions among all", "1"),
        "intruders": ("intruder dimensions", "directions"),
    }
    charts = (
        Curves(
            "leading",
            "Share of the change in the first matrix's leading directions",
            value="leading_by_kind",
            series="kind",
            caption="Mean over the matrices of a kind. A change that has nothing to do with the "
            "matrix has the share of the table's last column.",
        ),
    )
    tables = (
        NumberTable(
            "at-the-end",
            "At the last checkpoint",
            (
                (
                    "last_change",
                    "distance moved, of the first norm, at the end",
                    "1",
                    "moved",
                ),
                (
                    "last_rank",
                    "effective rank of the change at the end",
                    "directions",
                    "rank",
                ),
                (
                    "last_intruders",
                    "intruder dimensions at the end",
                    "directions",
                    "intruders",
                ),
                (
                    "last_leading",
                    "share in leading directions at the end",
                    "1",
                    "in leading",
                ),
                (
                    "last_chance",
                    "share in leading directions by chance",
                    "1",
                    "by chance",
                ),
            ),
            rows="block",
            caption=f"Leading: the directions that hold {_HELD} of the first matrix's energy.",
        ),
    )
    section = Section(
        title="What changed in the weights",
        definition="How far each weight matrix moved from the first checkpoint, over how many "
        "directions, and whether these are directions that the matrix had.",
        symbol="‖W_t − W₀‖_F / ‖W₀‖_F",
        null="A change that has nothing to do with the matrix: k of s directions hold the share "
        "k / s of it.",
        care="That weights moved says nothing of function by itself: control runs move as far.",
        source="Shuttleworth et al. 2024; Roy and Vetterli 2007",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_number("threshold", self.threshold, 0, 1, above=True)

    def needs(self) -> Sequence[Need]:
        """Return the weight blocks."""
        return [Weights(self.blocks)]

    def observe(self, reading: BlockReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return distance, rank, share and intruders of one block at every step."""
        # The first matrix is read once if it is one piece; a high one is too large to be kept.
        first = lru_cache(maxsize=1)(partial(_matrix, reading, int(reading.steps[0])))
        base = Base(_grams(reading, int(reading.steps[0]), first)[0])
        lines = [
            self._at(base, *_grams(reading, int(step), first)) for step in reading.steps
        ]
        return xr.Dataset(
            {
                **{name: ("step", [line[name] for line in lines]) for name in lines[0]},
                "size": float(np.sqrt(base.energy.sum())),
                "leading_chance": base.leading(HELD) / len(base.energy),
            },
            coords={"step": reading.steps},
        )

    def _at(
        self, base: Base, matrix: np.ndarray, change: np.ndarray
    ) -> dict[str, float]:
        """Return what a step shows, by the Gram matrices of the matrix and of its change."""
        if not change.any():
            zeros = dict.fromkeys(
                ("distance_moved", "effective_rank", "intruders"), 0.0
            )
            return {**zeros, "leading_share": np.nan}
        return {
            "distance_moved": float(np.sqrt(np.trace(change))),
            "effective_rank": effective_rank(spectrum=singular_values(change)),
            "leading_share": base.share(change, HELD)[0],
            "intruders": float(base.intruders(matrix, self.n_leading, self.threshold)),
        }

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the change of each kind of matrix, and what stands at the end."""
        by_kind = data[["distance_moved", "size", "leading_share"]].assign_coords(
            block=[kind_of_block(str(block)) for block in data.block.values]
        )
        squares = (
            (by_kind[["distance_moved", "size"]] ** 2).groupby("block").sum(min_count=1)
        )
        change = (squares.distance_moved / squares["size"]) ** 0.5
        leading = by_kind.leading_share.groupby("block").mean()
        last = data.isel(step=-1)
        return data.assign(
            relative_change=change.rename(block="kind").transpose("kind", "step"),
            leading_by_kind=leading.rename(block="kind").transpose("kind", "step"),
            last_change=last.distance_moved / last["size"],
            last_rank=last.effective_rank,
            last_intruders=last.intruders,
            last_leading=last.leading_share,
            last_chance=data.leading_chance,
        )

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which kinds moved, how far, and in which directions."""
        if "last_rank" not in data or "run" in data.last_rank.dims:
            return []
        frozen = (data.distance_moved == 0).all("step")
        count = data.sizes["block"]
        still = int(frozen.sum())
        subject = partial(Subject, name)
        never = measurement(subject("distance_moved"), still, whole=float(count))
        lines = [never] if still else []
        known = data.distance_moved.isel(step=-1).notnull().any()
        if still == count or not known:
            return lines
        moving = data.sel(block=~frozen)
        intruders = moving.last_intruders
        return [
            *lines,
            _farthest(subject("relative_change"), data),
            measurement(subject("last_rank"), _median(moving.last_rank)),
            measurement(
                subject("last_leading"),
                _median(moving.last_leading),
                units="1",
                beside=[Beside("null", "chance", _median(moving.last_chance))],
            ),
            measurement(
                subject("last_intruders"),
                int((intruders > 0).sum()),
                whole=float(moving.sizes["block"]),
            ),
        ]


def _farthest(subject: Subject, data: xr.Dataset) -> Claim:
    """Return which kind of matrix moved farthest, beside the one that moved least."""
    ends = data.relative_change.isel(step=-1).to_series().sort_values()
    ends = ends[ends > 0]
    least = [Beside("reference", str(ends.index[0]), float(ends.iloc[0]))]
    return measurement(
        replace(subject, label=str(ends.index[-1])),
        float(ends.iloc[-1]),
        units="1",
        beside=least if len(ends) > 1 else [],
    )


def _grams(
    reading: BlockReading, step: int, first: Callable[[int, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the Gram matrices of a block at a step, and of its change since the first one.

    They are those of the shorter side. Of a high matrix some rows are read at a time: in float64,
    the embedding of 128,000 tokens in 4,096 dimensions would take 4 GB for each of three copies.
    """
    n = reading.shape[0]
    columns = int(np.prod(reading.shape[1:]))
    size = n if n <= columns else max(1, _CHUNK // columns)
    sums = [np.zeros((min(n, columns),) * 2) for _ in range(2)]
    for start in range(0, n, size):
        base = first(start, min(start + size, n))
        is_first = step == reading.steps[0]
        matrix = (
            base if is_first else _matrix(reading, step, start, min(start + size, n))
        )
        change = matrix - base
        for total, part in zip(sums, (matrix, change), strict=True):
            total += part @ part.T if n <= columns else part.T @ part
    return sums[0], sums[1]


def _matrix(reading: BlockReading, step: int, start: int, stop: int) -> np.ndarray:
    """Return rows of the block at a step; what has more dimensions is (first, all other)."""
    values = reading.rows(step, np.arange(start, stop))
    matrix = values.reshape(len(values), -1).astype(np.float64)
    if not np.isfinite(matrix).all():
        raise NonFiniteError(f"the weights at step {step} hold NaN or infinity")
    return matrix


def _median(values: xr.DataArray) -> float:
    return float(np.nanmedian(values.values))
