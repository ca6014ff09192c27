"""What a run says of the claim that concepts converge because activations do."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ontogeny import dynamics
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.noise import MATCHINGS
from ontogeny.summary.noise import reference_index


def claim_statistics(
    data: xr.Dataset, apart: np.ndarray, moved: np.ndarray
) -> dict[str, Any]:
    """Return correlations of concept and activation distances over steps, with their p-values."""
    try:
        comparison = dynamics.compare_signals(
            apart.T, moved.T, data.step.values, reference_index=reference_index(data)
        )
    except ArgumentError:  # too few steps, or nothing moved: the page says so
        return {}
    return {
        "spearman": ("layer", np.atleast_1d(comparison.spearman)),
        "fluctuation_spearman": (
            "layer",
            np.atleast_1d(comparison.fluctuation_spearman),
        ),
        "fluctuation_p": ("layer", np.atleast_1d(comparison.spearman_p)),
    }


def claim_words(data: xr.Dataset) -> list[str]:
    """Return sentences on the claim, on what size alone explains, and on the local constants."""
    return _together(data) + _explained_by_size(data) + _local_constants(data)


def _together(data: xr.Dataset) -> list[str]:
    if "spearman" not in data:
        return [
            (
                "Too few {checkpoint}s, or too little movement, to compare concept with activation "
                "distances."
            )
        ]
    rho = data.spearman
    p = data.fluctuation_p
    line = (
        f"Distances of concepts and of activations rise and fall together (Spearman "
        f"{float(rho.min()):.2f} to {float(rho.max()):.2f} over layers), trends included."
    )
    finite = p.values[np.isfinite(p.values)]
    if not finite.size:
        return [
            line,
            (
                "No layer has noise around both trends that could be compared: there is none, or "
                "both follow the same schedule."
            ),
        ]
    shared = int((dynamics.holm(finite) <= 0.05).sum())
    return [
        line,
        (
            f"Beyond their trends they share fluctuations in {shared} of {finite.size} layers with "
            f"noise around both (surrogates, corrected at 5 %; {p.size - finite.size} cannot be "
            "judged). What two falling curves have in common anyway is not counted."
        ),
    ]


def _explained_by_size(data: xr.Dataset) -> list[str]:
    if "permuted_relative" not in data:
        return []
    permuted = data.permuted_relative.where(data.permuted_relative > 0)
    times = float((data.here_relative / permuted).median())
    if np.isnan(times):
        return []
    about = 0.8 <= times <= 1.25
    verdict = (
        "about what their size gives"
        if about
        else "size alone does not explain the distance"
    )
    return [
        (
            f"This run's differences from the reference move the concepts {times:.2g} times as far "
            "as the same differences permuted over tokens do (median over layers and "
            f"{{checkpoint}}s): {verdict}."
        )
    ]


def _local_constants(data: xr.Dataset) -> list[str]:
    if "extractor_random" not in data:
        return []
    largest = data.extractor_random.max("draw")
    parts = [f"{m} {float(largest.sel(matching=m).median()):.2g}" for m in MATCHINGS]
    layers = f"{float(data.layer_random.max('draw').median()):.2g}"
    if "layer_towards" in data:  # where nothing moved there is no such direction
        layers += f", towards the reference {float(data.layer_towards.median()):.2g}"
    return [
        (
            "Local constant of the extractor in random directions, median: "
            f"{', '.join(parts)}; of the layers' maps {layers}. All are lower bounds."
        )
    ]
