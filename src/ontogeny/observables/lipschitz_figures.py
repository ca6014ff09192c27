"""What follows from distances of parameters, activations and concepts: ratios, test, figures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import xarray as xr

from .. import dynamics
from ..errors import ArgumentError
from ..figures import Band, Curves, Figure, Section, attach
from .concept_figures import filled_steps
from .rows import reference_index

__all__ = ["summarise_lipschitz"]

_MATCHINGS = ("as returned", "matched")


def summarise_lipschitz(
    data: xr.Dataset, concepts: xr.Dataset, of: str, distance: str
) -> xr.Dataset:
    """Return the stacked cells of `Lipschitz` with ratios, the test, words and figures."""
    if "distance" not in concepts:
        raise ArgumentError(f"{of} has no finished cell, so that there is nothing to compare with.")
    if distance not in concepts.distance.values:
        raise ArgumentError(
            f"{of} has no distance {distance!r}; it has {concepts.distance.values}."
        )
    apart = concepts.distance_to_reference.reindex(step=data.step, layer=data.layer)
    apart = apart.transpose("distance", "alignment", "layer", "step")
    moved = data.activation_distance.transpose("layer", "step")
    first = dynamics.lipschitz_ratios(data.step.values, apart.values, moved.values)
    second = dynamics.lipschitz_ratios(
        data.step.values, moved.values, data.parameter_distance.values
    )
    data = data.assign(
        concept_distance=apart,
        concepts_per_activations=(apart.dims, first.ratio),
        activations_per_parameters=(moved.dims, second.ratio),
        **_compared(data, apart.sel(distance=distance, alignment="matched").values, moved.values),
    )
    data = data.assign(_bands(data, concepts))
    if "extractor_random" in data:
        data = data.assign_coords(matching=list(_MATCHINGS))
    figures = _figures([str(name) for name in data.distance.values], set(map(str, data.data_vars)))
    return attach(data, _section(of, distance), figures, _statements(data))


def _bands(data: xr.Dataset, concepts: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return intervals over tokens, and what refitting, chance and random directions give.

    The concepts' node holds distances of refits to this step's fit and of chance, both absolute;
    over the same activation distance they are ratios that hold nothing of the run's own movement.
    """
    moved = data.activation_distance.where(data.activation_distance > 0)
    steps = data.parameter_distance.where(data.parameter_distance > 0)
    spread = 1.96 * data.activation_distance_stderr
    found: dict[str, xr.DataArray] = {}
    for end, distance in (("low", data.activation_distance - spread), ("high", moved + spread)):
        distance = distance.clip(min=0)
        found |= {f"activations_{end}": distance, f"per_parameters_{end}": distance / steps}
        for kind in ("refit", "chance"):
            if f"absolute_{kind}_{end}" in concepts:
                apart = concepts[f"absolute_{kind}_{end}"]
                apart = apart.reindex(step=data.step, layer=data.layer)
                found[f"{kind}_{end}"] = apart / moved
    if "layer_random" in data:
        found["random_low"] = filled_steps(data.layer_random.min("draw"))
        found["random_high"] = filled_steps(data.layer_random.max("draw"))
    return found


def _compared(data: xr.Dataset, apart: np.ndarray, moved: np.ndarray) -> dict[str, Any]:
    """Return correlations of concept and activation distances over steps, with their p-values."""
    try:
        found = dynamics.compare_signals(
            apart.T, moved.T, data.step.values, reference_index=reference_index(data)
        )
    except ArgumentError:  # too few steps, or nothing moved: the page says so
        return {}
    return {
        "spearman": ("layer", np.atleast_1d(found.spearman)),
        "fluctuation_spearman": ("layer", np.atleast_1d(found.fluctuation_spearman)),
        "fluctuation_p": ("layer", np.atleast_1d(found.spearman_p)),
    }


def _statements(data: xr.Dataset) -> list[str]:
    words = [*_claim(data)]
    times = np.nan
    if "dealt_relative" in data:
        times = float(
            (data.here_relative / data.dealt_relative.where(data.dealt_relative > 0)).median()
        )
    if np.isfinite(times):
        words.append(
            f"This run's differences from the reference move the concepts {times:.2g} times as far "
            "as the same differences dealt out to the wrong tokens do (median over layers and "
            "steps): "
            + (
                "about what their size gives."
                if 0.8 <= times <= 1.25
                else "size alone does not explain the distance."
            )
        )
    if "extractor_random" in data:
        raw = data.extractor_random.max("draw")
        part = [f"{name} {float(raw.sel(matching=name).median()):.2g}" for name in _MATCHINGS]
        words.append(
            "Local constant of the extractor in random directions, median: "
            + ", ".join(part)
            + f"; of the layers' maps {float(data.layer_random.max('draw').median()):.2g}"
            # Where nothing moved there is no direction towards the reference.
            + (
                f", towards the reference {float(data.layer_towards.median()):.2g}"
                if "layer_towards" in data
                else ""
            )
            + ". All are lower bounds."
        )
    return words


def _claim(data: xr.Dataset) -> list[str]:
    if "spearman" not in data:
        return [
            "Too few steps, or too little movement, to compare concept with activation distances."
        ]
    rho, p = data.spearman, data.fluctuation_p
    line = (
        f"Distances of concepts and of activations rise and fall together (Spearman "
        f"{float(rho.min()):.2f} to {float(rho.max()):.2f} over layers), trends included."
    )
    known = p.values[np.isfinite(p.values)]
    if not known.size:
        return [line, "No layer has noise around its trend that could be compared."]
    shared = int((dynamics.holm(known) <= 0.05).sum())
    return [
        line,
        (
            f"Beyond their trends they share fluctuations in {shared} of {known.size} layers with "
            f"noise around both (surrogates, corrected at 5 %; {p.size - known.size} cannot be "
            "judged). What two falling curves have in common anyway is not counted."
        ),
    ]


def _figures(distances: Sequence[str], known: Collection[str]) -> list[Figure]:
    def bands(**labels: str) -> list[Band]:
        return [Band(f"{k}_low", f"{k}_high", v) for k, v in labels.items() if f"{k}_low" in known]

    ratios = [
        Curves(
            f"{name}-per-activations",
            f"{name.replace('-', ' ').capitalize()} distance of concepts per activation distance",
            value="concepts_per_activations",
            facet="alignment",
            select={"distance": name},
            y_scale="log",
            bands=bands(refit="refitting alone", chance="chance"),
            caption="d(φ(h_t), φ(h_ref)) / ‖h_t − h_ref‖. A Lipschitz extractor keeps it bounded; "
            "a rise towards the reference is what noise in the fit, or a jump of the solver, "
            "looks like. Grey: the distance between refits at this step, and that of unrelated "
            "concepts, over the same activation distance: within the first, the ratio is the "
            "solver's noise.",
        )
        for name in distances
    ]
    per_parameters = Curves(
        "activations-per-parameters",
        "Activation distance per parameter distance",
        value="activations_per_parameters",
        y_scale="log",
        interval=("per_parameters_low", "per_parameters_high"),
        bands=bands(random="random directions"),
        caption="‖h_t − h_ref‖ / ‖θ_t − θ_ref‖, all parameters of the model; shade: ±1.96 standard "
        "errors over tokens. Grey: the same ratio for small steps from this checkpoint in random "
        "directions of its parameters.",
    )
    return [*ratios, per_parameters, *_FIGURES]


_FIGURES: list[Figure] = [
    Curves(
        "parameters",
        "Distance of the parameters",
        value="parameter_distance",
        series=None,
        caption="‖θ_t − θ_ref‖, exact: nothing is sampled.",
    ),
    Curves(
        "activations",
        "Distance of the activations",
        value="activation_distance",
        interval=("activations_low", "activations_high"),
        caption="‖h_t − h_ref‖_F, as it is; shade: ±1.96 standard errors over tokens.",
    ),
]


def _section(of: str, distance: str) -> Section:
    return Section(
        title=f"Parameters, activations, concepts ({of})",
        definition="How far parameters, activations and concepts are from the reference's at each "
        "step, and their ratios. The report's claim: concepts converge because activations do, "
        "and these because parameters do.",
        symbol="d(φ(h_t), φ(h_T)) ≤ L_φ ‖h_t − h_T‖ ≤ L_φ L_f ‖θ_t − θ_T‖",
        null="Grey: refitting and chance under the ratios of concepts, random directions under "
        "that of activations. Fluctuations around the two trends against surrogates that keep "
        "trend and memory; "
        "and activations as far from the reference, with the differences dealt to other tokens.",
        care=f"Concepts by {distance} distance. Differences dealt to other tokens hold the "
        "reference's own activations once more, with the other sign. A bound says that one curve "
        "cannot stay up while the other goes to 0; it does not say that it follows it. Ratios and "
        "perturbations give "
        "lower bounds of Lipschitz constants, never upper ones.",
        source="Bernas 2025, Defs 35-37, Property 1, sec. 5.2-5.3",
    )
