"""Commutators, projections and sparse latents of a run, averaged over seeds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..figures import Band, Scatter, Section
from .view import View, curves, runs_of

# ---- commutators --------------------------------------------------------------------------------


def _commutators(data: xr.Dataset) -> xr.Dataset:
    names = ("norm", "defect", "gradient_norm")
    return xr.Dataset(
        {
            **{n: data[f"{n}_over_pairs"].sel(statistic="median", drop=True) for n in names},
            "defect_p90": data.defect_over_pairs.sel(statistic="90 % point", drop=True),
            "training_loss": data.loss.median("pair").assign_attrs(
                long_name="training loss, median of the pairs", units="nats"
            ),
        }
    )


def _against_loss(facet: str | None) -> Scatter:
    """Return the norm of commutators against the loss, one point a step."""
    return Scatter(
        "against-loss", "Norm of the commutator against the loss", x="training_loss", y="norm",
        points="step", colour="step", facet=facet, x_scale="log", y_scale="log",
        caption="Means over seeds at each step. Both fall in training: that alone relates them.",
    )  # fmt: skip


def _projected(data: xr.Dataset) -> xr.Dataset:
    taken = data[["rho_median", "ratio", "perpendicular", "control"]]
    return taken.assign(chance_from=data.control_low, chance_to=data.control_high)


def _say_commutators(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in runs_of(data):
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
    for label, one in runs_of(data):
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


COMMUTATORS = View(
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
        curves("norm", "Norm of the commutator", "norm", series=None, y_scale="log"),
        curves("defect", "Normalised defect, median of the pairs", "defect", series=None),
        curves("p90", "Normalised defect, 90 % point", "defect_p90", series=None),
        curves("gradients", "Norm of the gradients", "gradient_norm", series=None, y_scale="log"),
        _against_loss(None),
    ],
    [
        curves("norm", "Norm of the commutator", "norm", series="run", y_scale="log"),
        curves("defect", "Normalised defect, median of the pairs", "defect", series="run"),
        _against_loss("run"),
    ],
    _say_commutators,
)
_CHANCE = Band("chance_from", "chance_to", "random subspaces, 95 %")
PROJECTION = View(
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
        curves(
            "rho", "Share of the norm inside", "rho_median",
            series="vector", facet="setting", bands=[_CHANCE],
        ),
        curves(
            "perpendicular", "Share of the norm outside", "perpendicular",
            series="vector", facet="setting",
        ),
        curves("ratio", "Share inside over chance", "ratio", series="vector", facet="setting"),
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
        random_from=data.accuracy_lost_random_latents_low,
        random_to=data.accuracy_lost_random_latents_high,
        before_minus_reconstruction=data.accuracy_lost.sel(ablation="reconstruction", drop=True),
    )


def _say_latents(data: xr.Dataset) -> list[str]:
    words = []
    for label, one in runs_of(data):
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


LATENTS = View(
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
        curves(
            "lost", "Accuracy lost", "accuracy_lost", series="ablation", facet="variant",
            bands=[Band("random_from", "random_to", "random latents, 95 % of draws")],
        ),
        curves("before", "Accuracy before removal", "accuracy", series=None),
        curves(
            "strongest", "Strongest correlation of a latent with m", "strongest",
            series=None, facet="variant", bands=[Band("none", "chance", "largest by chance, 95 %")],
        ),
    ],
    [],
    _say_latents,
)  # fmt: skip
