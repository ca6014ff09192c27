"""Ranks, accuracy and attention of a run, averaged over seeds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..figures import Band, Heatmap, NullComparison, Section
from .view import View, curves, runs_of, spread

# ---- ranks --------------------------------------------------------------------------------------


def _ranks(data: xr.Dataset) -> xr.Dataset:
    kinds = [str(b).rsplit(".", 2)[-2] for b in data.block.values]
    names = ["variance_rank", "increment_participation_ratio", "net_drift_ratio"]
    names += ["walk_low", "walk_high", "shuffled_low", "shuffled_high", "learned_rank"]
    whole = data[names].assign(below_chance=(data.p_lower < 0.05).astype(float))
    by_kind = whole.assign_coords(block=kinds).groupby("block")
    whole = by_kind.mean().assign(matrices=by_kind.count().variance_rank).rename(block="kind")
    growing = {
        "growing": "growing_rank_by_kind",
        "growing_walk_from": "growing_walk_low_by_kind",
        "growing_walk_to": "growing_walk_high_by_kind",
        "growing_shuffled_from": "growing_shuffled_low_by_kind",
        "growing_shuffled_to": "growing_shuffled_high_by_kind",
    }
    bands = {
        "walk_low": "walk_from",
        "walk_high": "walk_to",
        "shuffled_low": "shuffled_from",
        "shuffled_high": "shuffled_to",
    }
    so_far = xr.Dataset({n: data[v] for n, v in growing.items()}).rename(step_="steps_so_far")
    return whole.rename(bands).merge(so_far)


def _say_ranks(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in runs_of(data):
        each = ", ".join(
            f"{kind} {spread(one, 'variance_rank', 1, kind=kind)} (shuffled "
            f"{float(one.shuffled_from.sel(kind=kind)):.1f}-"
            f"{float(one.shuffled_to.sel(kind=kind)):.1f}, walk "
            f"{float(one.walk_from.sel(kind=kind)):.1f}-{float(one.walk_to.sel(kind=kind)):.1f})"
            for kind in one.kind.values
        )
        below = float(one.below_chance.mean())
        words.append(
            f"{label}variance rank of the whole run: {each}. Below the same increments in random "
            f"order (p < .05, uncorrected) in {100 * below:.0f} % of the matrices."
        )
    return words


_WALK = Band("growing_walk_from", "growing_walk_to", "random walk")
_SHUFFLED = Band("growing_shuffled_from", "growing_shuffled_to", "shuffled increments")
_WHOLE = [
    Band("walk_from", "walk_to", "random walk"),
    Band("shuffled_from", "shuffled_to", "shuffled increments"),
]
RANKS = View(
    "weight-rank",
    _ranks,
    Section(
        title="Variance rank of the weights' paths",
        definition="Principal components that hold 90 % of the variance of a matrix's snapshots; "
        "mean over the layers.",
        symbol="r₉₀",
        null="Random walks with the same step lengths, and the same increments in random order.",
        care="A random walk in many dimensions has r₉₀ = 6: a low rank by itself shows nothing.",
    ),
    [
        curves(
            "growing", "Variance rank of the run so far", "growing",
            x="steps_so_far", x_scale="linear", series=None, facet="kind", bands=[_WALK, _SHUFFLED],
        ),
        NullComparison(
            "whole", "Variance rank of the whole run", value="variance_rank", rows="kind",
            interval=("variance_rank_low", "variance_rank_high"), bands=_WHOLE,
        ),
    ],
    [
        curves(
            "growing", "Variance rank of the run so far", "growing",
            x="steps_so_far", x_scale="linear", series="run", facet="kind",
        ),
        NullComparison(
            "whole", "Variance rank of the whole run", value="variance_rank", rows="run",
            facet="kind", interval=("variance_rank_low", "variance_rank_high"), bands=_WHOLE,
        ),
    ],
    _say_ranks,
)  # fmt: skip


# ---- accuracy -----------------------------------------------------------------------------------


def _accuracies(data: xr.Dataset) -> xr.Dataset:
    return data[["accuracy", "loss", "accuracy_majority"]].rename(accuracy_majority="majority")


def _say_accuracies(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in runs_of(data):
        last = one.dropna("step", how="all", subset=["accuracy"]).isel(step=-1)
        each = ", ".join(
            f"{name} {spread(last, 'accuracy', 2, set=name)} "
            f"(most frequent label {float(last.majority.sel(set=name)):.2f})"
            for name in one.set.values
        )
        words.append(f"{label}accuracy at step {int(last.step):,}: {each}.")
    return words


_MAJORITY = Band("majority", "majority", "most frequent label")
ACCURACY = View(
    "readout-accuracy",
    _accuracies,
    Section(
        title="Accuracy",
        definition="Share of right answers on fresh examples, one set for each m.",
        null="Always naming the most frequent label.",
        care="Compare runs where they have the same loss, not only at the same step.",
    ),
    [
        curves("accuracy", "Accuracy for each m", "accuracy", series="set", bands=[_MAJORITY]),
        Heatmap("learned", "Accuracy over training", value="accuracy", y="set"),
    ],
    [
        curves(
            "accuracy", "Accuracy for each m", "accuracy",
            series="run", facet="set", bands=[_MAJORITY],
        ),
        Heatmap("forgetting", "Forgetting matrix", value="accuracy", y="set", facet="run"),
        curves("loss", "Loss for each m", "loss", series="run", facet="set"),
    ],
    _say_accuracies,
)  # fmt: skip


# ---- attention ----------------------------------------------------------------------------------


def _attention(data: xr.Dataset) -> xr.Dataset:
    last = data.layer_entropy.isel(layer=-1, drop=True)
    return xr.Dataset(
        {"entropy": last, "uniform": data.layer_entropy_uniform, "layers": data.layer_entropy}
    )


def _say_attention(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in runs_of(data):
        for name in one.set.values:
            values = one.entropy.sel(set=name).transpose("step").values
            low = int(np.nanargmin(values))
            words.append(
                f"{label}{name}: last-layer entropy {values[0]:.2f} at first, lowest "
                f"{values[low]:.2f} at step {int(one.step[low]):,}, {values[-1]:.2f} at the end."
            )
    return words


_EQUAL = Band("uniform", "uniform", "equal attention")
ATTENTION = View(
    "readout-attention",
    _attention,
    Section(
        title="Attention at the read-out",
        definition="Entropy of the last token's attention, mean over heads and texts.",
        symbol="H = −Σⱼ aᵢⱼ log aᵢⱼ",
        null="Equal attention to all tokens.",
        care="Sharp attention is no proxy for a solved task.",
    ),
    [
        curves("entropy", "Entropy in the last layer", "entropy", series="set", bands=[_EQUAL]),
        curves(
            "layers", "Entropy in every layer", "layers",
            series="layer", facet="set", bands=[_EQUAL],
        ),
    ],
    [
        curves(
            "entropy", "Entropy in the last layer", "entropy",
            series="run", facet="set", bands=[_EQUAL],
        ),
    ],
    _say_attention,
)  # fmt: skip
