"""Whether steps of gradient descent on two batches commute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ontogeny import updates
from ontogeny.capture.objectives import loss_names
from ontogeny.errors import ArgumentError, check_choice, check_number
from ontogeny.figures import Section
from ontogeny.needs import Gradients, Need
from ontogeny.observables.base import Observable
from ontogeny.observables.catalogued import PresetEntry
from ontogeny.quantities import Quantity
from ontogeny.summary.figures import along
from ontogeny.summary.noise import Z
from ontogeny.trees import Nodes

from ..updates.commutators import METHODS, Commutator
from ..updates.field import norm
from ..updates.pairs import FEWEST as FEWEST_PAIRS

STATISTICS = ("median", "90 % point")


def _over_pairs(name: str, title: str, units: str = "1", **options: Any) -> Quantity:
    noise = {"unit": "pairs of batches", "shade": "bootstrap over pairs"}
    options = {"series": "statistic", **noise, **options}
    return Quantity(f"{name}_over_pairs", title, units, **options)


@dataclass(frozen=True)
class Commutators(Observable):
    """Commutators θ_AB − θ_BA of gradient steps on random pairs of batches, at every checkpoint.

    Norm, normalised defect ‖θ_AB − θ_BA‖ / (‖ηg_A‖ ‖ηg_B‖), cosine of the two gradients, and the
    gradients' norm. The batches are the same at every checkpoint.

    Parameters
    ----------
    loss
        Name of the loss (`ontogeny.needs.Gradients`); None is read off the model's class.
    lr
        Learning rate η of the two steps: of plain gradient descent, whatever trained the model.
    pairs
        Number of pairs of batches.
    batch_size
        Texts in a batch, at most half of the input set: the two batches of a pair share none.
    on
        Name of the input set; None means the study's first.
    method, dtype
        As in `ontogeny.updates.commutator`.
    random_state
        Seed of the batches and of the bootstrap over pairs.

    Examples
    --------
    >>> Commutators("next-token", lr=1e-2).arguments()["pairs"]
    9
    """

    loss: str | None = None
    lr: float = 1e-3
    pairs: int = 9
    batch_size: int = 16
    on: str | None = None
    method: str = "difference"
    dtype: str | None = None
    random_state: int = 0

    kind = "commutators"
    minima: ClassVar[Mapping[str, int]] = {"pairs": 1, "batch_size": 1}
    choices = {"method": METHODS, "dtype": ("float32", "float64")}
    question = "Does the order of two gradient steps matter?"
    requires = "texts, a vocabulary head"
    price = "some dozens of gradients at each step"
    obstacles = ("no_prediction",)
    presets = (PresetEntry(("everything",), {"loss": "$loss"}, 200),)
    role = "motion"
    quantities: ClassVar[tuple[Quantity, ...]] = (
        _over_pairs(
            "defect",
            "normalised defect",
            "per weight unit",
            symbol="‖θ_AB − θ_BA‖ / (‖ηg_A‖ ‖ηg_B‖)",
            rows="commutator defect",
            at={"statistic": "median"},
            caption="The commutator's norm over those of the two steps.",
            y_scale="log",
        ),
        _over_pairs(
            "norm",
            "norm of the commutator",
            "weight units",
            symbol="‖θ_AB − θ_BA‖",
            caption="It falls with the gradients.",
            y_scale="log",
        ),
        _over_pairs(
            "cosine",
            "cosine of the two gradients",
            symbol="cos(g_A, g_B)",
            caption="1: both batches ask for the same step.",
        ),
        _over_pairs(
            "gradient_norm",
            "norm of the gradients (geometric mean of the pair)",
            heading="norm of the gradients",
            units="loss per weight unit",
            symbol="√(‖g_A‖ ‖g_B‖)",
            caption="What the defect is divided by.",
            y_scale="log",
        ),
    )
    section = Section(
        title="Commutators of gradient steps",
        definition="How far two steps of gradient descent, on batches A and B, end apart when "
        "their order is exchanged.",
        symbol="θ_AB − θ_BA = η[(g_A(θ − ηg_B) − g_A(θ)) − (g_B(θ − ηg_A) − g_B(θ))]",
        null="0 for quadratic losses with commuting Hessians and a common minimum. Bands: 95 % of "
        "bootstraps over pairs of batches.",
        care="Few pairs are noisy; the 90 % point of nine lies between the two largest. "
        "Subtracting two paths in float32 measures rounding once gradients are small: here only "
        "gradients are subtracted, in float64 unless another dtype is set. The steps are those of "
        "plain gradient descent, not of the optimiser that trained the model.",
        source="Xu 2026, sec. 3.3.2, Fig. 3",
    )
    variables = {
        **{q.name.removesuffix("_over_pairs"): (q.title, q.units) for q in quantities},
        "loss": ("mean loss of the two batches", "nats"),
        "texts": ("texts in the input set", "texts"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        if self.loss is not None:
            check_choice("loss", self.loss, [n for n in loss_names() if n != "none"])
        check_number("lr", self.lr, above=True)

    def needs(self) -> Sequence[Need]:
        """Return the model with its loss."""
        return [Gradients(self.loss, self.on)]

    def each_pair(self, reading: Any) -> Iterator[Commutator]:
        """Yield the commutator of every pair of batches."""
        borrowed = reading[self.needs()[0]]
        if 2 * self.batch_size > len(borrowed.inputs):
            raise ArgumentError(
                f"batch_size={self.batch_size} needs {2 * self.batch_size} texts for a pair; the "
                f"input set has {len(borrowed.inputs)}."
            )
        batches = borrowed.draw(
            2 * self.pairs, self.batch_size, self.random_state, together=2
        )
        return updates.commutators(
            borrowed.model,
            borrowed.loss,
            batches,
            self.lr,
            method=self.method,
            dtype=self.dtype,
            random_state=self.random_state,
        )

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return norm, defect, cosine, gradient norm and loss of every pair."""
        return self.stacked(
            reading, [measures(pair) for pair in self.each_pair(reading)]
        )

    def stacked(self, reading: Any, pairs: Sequence[Mapping[str, float]]) -> xr.Dataset:
        """Return the numbers of all pairs along ``pair``, and the number of texts."""
        data = xr.Dataset(along("pair", pairs), coords={"pair": np.arange(len(pairs))})
        return data.assign(texts=len(reading[self.needs()[0]].inputs))

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add median and 90 % point over pairs of everything measured, with their intervals."""
        for name in ("norm", "defect", "cosine", "gradient_norm"):
            data = data.assign(over_pairs(data[name], name, self.random_state))
        return data.assign_coords(statistic=list(STATISTICS))

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return the first and the last defect."""
        return statements(data, 2 * self.pairs * self.batch_size)


def measures(pair: Commutator) -> dict[str, float]:
    """Return the numbers of one pair.

    Raises
    ------
    NonFiniteError
        If a gradient is zero, so that defect and cosine are undefined.
    """
    first = norm(pair.gradient_a)
    second = norm(pair.gradient_b)
    return {
        "norm": pair.norm,
        "defect": pair.defect,
        "cosine": pair.cosine,
        "gradient_norm": float(np.sqrt(first * second)),
        "loss": (pair.loss_a + pair.loss_b) / 2,
    }


def over_pairs(values: xr.DataArray, name: str, random_state: int) -> dict[str, Any]:
    """Return ``{name}_over_pairs`` (statistic, step) with the ends and the error of its interval.

    Of too few pairs the ends are no 95 % interval, and the error is unknown.
    """
    table = values.transpose("step", "pair").values
    intervals = np.full((3, len(STATISTICS), len(table)), np.nan)
    for i, row in enumerate(table):
        if np.isfinite(row).all():
            at = updates.pair_statistics(row, random_state=random_state)
            intervals[:, 0, i] = at.median, *at.median_interval
            intervals[:, 1, i] = at.p90, *at.p90_interval
    value, low, high = intervals
    enough = table.shape[1] >= FEWEST_PAIRS
    error = (high - low) / 2 / Z if enough else np.full_like(low, np.nan)
    parts = {"": value, "_low": low, "_high": high, "_stderr": error}
    dims = ("statistic", "step")
    return {f"{name}_over_pairs{end}": (dims, part) for end, part in parts.items()}


def statements(data: xr.Dataset, n_pairs: int) -> list[str]:
    """Return sentences on the first and the last defect, of pairs with `n_pairs` texts in all."""
    median = data.sel(statistic="median")
    defect = median.defect_over_pairs
    there = np.flatnonzero(np.isfinite(defect.values))
    if not len(there):
        return []
    words = []
    for i in dict.fromkeys((int(there[0]), int(there[-1]))):
        low = float(median.defect_over_pairs_low[i])
        high = float(median.defect_over_pairs_high[i])
        words.append(
            f"{float(defect[i]):.3g} ({low:.3g}–{high:.3g}) at {{step}} {int(data.step[i]):,}"
        )
    pairs = data.sizes["pair"]
    number = "one pair" if pairs == 1 else f"{pairs} pairs"
    sentences = [f"The median defect of {number} is {' and '.join(words)}."]
    if pairs < FEWEST_PAIRS:
        sentences.append(f"Fewer than {FEWEST_PAIRS} pairs give no 95 % interval.")
    texts = int(data.texts.max())
    if n_pairs > texts:
        sentences.append(
            f"Pairs share texts ({n_pairs:,} drawn of {texts:,}), so intervals are too narrow."
        )
    return sentences
