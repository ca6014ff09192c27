"""What a recipe takes from each study, and how it is drawn as mean and SD over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Figure, Heatmap, NullComparison, Section, attach

__all__ = ["VIEWS", "View"]


@dataclass(frozen=True)
class View:
    """One node of a reproduction.

    Parameters
    ----------
    node
        Name of the observable whose results are taken.
    take
        From one seed's node to the few numbers that are averaged.
    section
        Words of the section.
    alone
        Figures where there is one run.
    compared
        Figures where runs are compared, along the dimension ``run``.
    say
        Sentences from the averages.
    """

    node: str
    take: Callable[[xr.Dataset], xr.Dataset]
    section: Section
    alone: Sequence[Figure]
    compared: Sequence[Figure]
    say: Callable[[xr.Dataset], list[str]]

    def draw(self, data: xr.Dataset, claim: str, source: str) -> xr.Dataset:
        """Return the averages with section, figures and sentences; `claim` is the paper's."""
        several = "run" in data.dims
        section = dataclasses.replace(
            self.section,
            care=f"{self.section.care} Shade: mean ∓ SD over {int(np.max(data.seeds))} seeds.",
            source=source,
        )
        figures = list(self.compared if several else self.alone)
        return attach(data, section, figures, [f"The paper: {claim}", *self.say(data)], "motion")


def _curves(name: str, title: str, value: str, **options: object) -> Curves:
    return Curves(name, title, value=value, interval=(f"{value}_low", f"{value}_high"), **options)  # type: ignore[arg-type]


# ---- ranks --------------------------------------------------------------------------------------


def _ranks(data: xr.Dataset) -> xr.Dataset:
    kinds = [str(b).rsplit(".", 2)[-2] for b in data.block.values]
    names = ["variance_rank", "increment_participation_ratio", "net_drift_ratio"]
    names += ["walk_low", "walk_high", "shuffled_low", "shuffled_high", "learned_rank"]
    whole = data[names].assign(below_chance=(data.p_lower < 0.05).astype(float))
    whole = whole.assign_coords(block=kinds).groupby("block").mean().rename(block="kind")
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
    # Only the windows that were ranked: a line through the steps between them would be broken.
    so_far = xr.Dataset({n: data[v] for n, v in growing.items()}).dropna("step", how="all")
    so_far = so_far.rename(step="steps_so_far")
    so_far.steps_so_far.attrs.update(long_name="last step of the run so far")
    return whole.rename(bands).merge(so_far)


def _say_ranks(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in _runs(data):
        each = ", ".join(
            f"{kind} {_spread(one, 'variance_rank', 1, kind=kind)} (shuffled "
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
_RANKS = View(
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
        _curves(
            "growing", "Variance rank of the run so far", "growing",
            x="steps_so_far", x_scale="linear", series=None, facet="kind", bands=[_WALK, _SHUFFLED],
        ),
        NullComparison(
            "whole", "Variance rank of the whole run", value="variance_rank", rows="kind",
            interval=("variance_rank_low", "variance_rank_high"), bands=_WHOLE,
        ),
    ],
    [
        _curves(
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
    return data[["accuracy", "loss", "majority"]]


def _say_accuracies(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in _runs(data):
        last = one.dropna("step", how="all", subset=["accuracy"]).isel(step=-1)
        each = ", ".join(
            f"{name} {_spread(last, 'accuracy', 2, set=name)} "
            f"(most frequent label {float(last.majority.sel(set=name)):.2f})"
            for name in one.set.values
        )
        words.append(f"{label}accuracy at step {int(last.step):,}: {each}.")
    return words


_MAJORITY = Band("majority", "majority", "most frequent label")
_ACCURACY = View(
    "readout-accuracy",
    _accuracies,
    Section(
        title="Accuracy",
        definition="Share of right answers on fresh examples, one set for each m.",
        null="Always naming the most frequent label.",
        care="Compare runs where they have the same loss, not only at the same step.",
    ),
    [
        _curves("accuracy", "Accuracy for each m", "accuracy", series="set", bands=[_MAJORITY]),
        Heatmap("learned", "Accuracy over training", value="accuracy", y="set"),
    ],
    [
        _curves(
            "accuracy", "Accuracy for each m", "accuracy",
            series="run", facet="set", bands=[_MAJORITY],
        ),
        Heatmap("forgetting", "Forgetting matrix", value="accuracy", y="set", facet="run"),
        _curves("loss", "Loss for each m", "loss", series="run", facet="set"),
    ],
    _say_accuracies,
)  # fmt: skip


# ---- attention ----------------------------------------------------------------------------------


def _attention(data: xr.Dataset) -> xr.Dataset:
    last = data.layer_entropy.isel(layer=-1, drop=True)
    return xr.Dataset({"entropy": last, "uniform": data.uniform, "layers": data.layer_entropy})


def _say_attention(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in _runs(data):
        for name in one.set.values:
            values = one.entropy.sel(set=name).transpose("step").values
            low = int(np.nanargmin(values))
            words.append(
                f"{label}{name}: last-layer entropy {values[0]:.2f} at first, lowest "
                f"{values[low]:.2f} at step {int(one.step[low]):,}, {values[-1]:.2f} at the end."
            )
    return words


_EQUAL = Band("uniform", "uniform", "equal attention")
_ATTENTION = View(
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
        _curves("entropy", "Entropy in the last layer", "entropy", series="set", bands=[_EQUAL]),
        _curves(
            "layers", "Entropy in every layer", "layers",
            series="layer", facet="set", bands=[_EQUAL],
        ),
    ],
    [
        _curves(
            "entropy", "Entropy in the last layer", "entropy",
            series="run", facet="set", bands=[_EQUAL],
        ),
    ],
    _say_attention,
)  # fmt: skip


# ---- commutators --------------------------------------------------------------------------------


def _commutators(data: xr.Dataset) -> xr.Dataset:
    names = ("norm", "defect", "gradient_norm")
    return xr.Dataset(
        {
            **{n: data[f"{n}_over_pairs"].sel(statistic="median", drop=True) for n in names},
            "defect_p90": data.defect_over_pairs.sel(statistic="90 % point", drop=True),
            "training_loss": data.loss.median("pair"),
        }
    )


def _projected(data: xr.Dataset) -> xr.Dataset:
    taken = data[["rho_median", "ratio", "perpendicular", "control"]]
    return taken.assign(chance_from=data.control_low, chance_to=data.control_high)


def _say_commutators(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in _runs(data):
        there = np.flatnonzero(np.isfinite(one.defect.values))
        first, last = one.isel(step=int(there[0])), one.isel(step=int(there[-1]))
        words.append(
            f"{label}normalised defect {float(first.defect):.2g} at step {int(first.step):,}, "
            f"{float(last.defect):.2g} at step {int(last.step):,}; its norm "
            f"{float(first.norm):.2g} and {float(last.norm):.2g}, that of the gradients "
            f"{float(first.gradient_norm):.2g} and {float(last.gradient_norm):.2g}."
        )
    return words


def _say_projected(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in _runs(data):
        last = one.isel(step=-1, setting=-1)
        each = ", ".join(
            f"{v} {float(last.rho_median.sel(vector=v)):.3f} "
            f"({float(last.ratio.sel(vector=v)):.1f} times chance)"
            for v in one.vector.values
        )
        words.append(
            f"{label}share of the norm inside at the last step, {one.setting.values[-1]}: {each}."
        )
    return words


_COMMUTATORS = View(
    "commutators",
    _commutators,
    Section(
        title="Commutators of gradient steps",
        definition="How far two gradient steps on batches A and B end apart when exchanged.",
        symbol="‖θ_AB − θ_BA‖",
        null="0 where steps commute; float64, so that rounding adds nothing.",
        care="The raw norm falls with the gradients: read the normalised defect beside it.",
    ),
    [
        _curves("norm", "Norm of the commutator", "norm", series=None, y_scale="log"),
        _curves("defect", "Normalised defect, median of the pairs", "defect", series=None),
        _curves("p90", "Normalised defect, 90 % point", "defect_p90", series=None),
        _curves("gradients", "Norm of the gradients", "gradient_norm", series=None, y_scale="log"),
    ],
    [
        _curves("norm", "Norm of the commutator", "norm", series="run", y_scale="log"),
        _curves("defect", "Normalised defect, median of the pairs", "defect", series="run"),
    ],
    _say_commutators,
)
_CHANCE = Band("chance_from", "chance_to", "random subspaces, 95 %")
_PROJECTION = View(
    "projection",
    _projected,
    Section(
        title="Inside and outside the trajectory's directions",
        definition="Share ρ of the norm that lies in the top components of the blocks' paths.",
        symbol="ρ = ‖P v‖ / ‖v‖",
        null="Random subspaces of the same dimension, and plain gradients: where these project as "
        "little, nothing is special about commutators.",
        care="Outside is √(1 − ρ²), not 1 − ρ.",
    ),
    [
        _curves(
            "rho", "Share of the norm inside", "rho_median",
            series="vector", facet="setting", bands=[_CHANCE],
        ),
        _curves(
            "perpendicular", "Share of the norm outside", "perpendicular",
            series="vector", facet="setting",
        ),
        _curves("ratio", "Share inside over chance", "ratio", series="vector", facet="setting"),
    ],
    [],
    _say_projected,
)  # fmt: skip


# ---- sparse latents -----------------------------------------------------------------------------


def _latents(data: xr.Dataset) -> xr.Dataset:
    names = ["accuracy_lost", "accuracy", "strongest", "latents_above_null"]
    return data[names].assign(
        chance=data.count_null,
        none=0.0,
        random_from=data.random_low,
        random_to=data.random_high,
        before_minus_reconstruction=data.accuracy_lost.sel(ablation="reconstruction", drop=True),
    )


def _say_latents(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in _runs(data):
        for variant in one.variant.values:
            each = []
            for step in one.step.values:
                at = one.sel(step=step, variant=variant)
                lost = {
                    str(n): 100 * float(at.accuracy_lost.sel(ablation=n))
                    for n in at.ablation.values
                }
                each.append(
                    f"step {int(step):,} (accuracy {float(at.accuracy):.2f}): "
                    f"by m {lost['count']:.1f}, random {lost['random']:.1f}, equal energy "
                    f"{lost['matched']:.1f}, largest {lost['largest']:.1f}"
                )
            words.append(f"{label}{variant}, points of accuracy lost: {'; '.join(each)}.")
    return words


_LATENTS = View(
    "sae-probe",
    _latents,
    Section(
        title="Removing sparse latents",
        definition="Accuracy lost when latents of a sparse autoencoder on the read-out's state are "
        "removed: those that follow m, the markers' positions, and controls.",
        null="As many random active latents (band), latents of equal energy, the largest ones, "
        "and the plain reconstruction.",
        care="What is lost depends on how latents are chosen.",
    ),
    [
        _curves(
            "lost", "Accuracy lost", "accuracy_lost", series="ablation", facet="variant",
            bands=[Band("random_from", "random_to", "random latents, 95 % of draws")],
        ),
        _curves("before", "Accuracy before removal", "accuracy", series=None),
        _curves(
            "strongest", "Strongest correlation of a latent with m", "strongest",
            series=None, facet="variant", bands=[Band("none", "chance", "largest by chance, 95 %")],
        ),
    ],
    [],
    _say_latents,
)  # fmt: skip


def _spread(data: xr.Dataset, name: str, digits: int, **labels: str) -> str:
    """Return ``"5.4 ∓ 0.5"``, or the mean alone where one seed has no deviation."""
    mean, sd = (float(data[each].sel(labels)) for each in (name, f"{name}_sd"))
    return f"{mean:.{digits}f}" + (f" ∓ {sd:.{digits}f}" if np.isfinite(sd) else "")


def _runs(data: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    if "run" not in data.dims:
        return [("", data)]
    return [(f"{label}: ", data.sel(run=label)) for label in data.run.values]


VIEWS = {
    view.node: view for view in (_RANKS, _ACCURACY, _ATTENTION, _COMMUTATORS, _PROJECTION, _LATENTS)
}
"""How each observable of a reproduction is drawn, by the name of its node."""
