"""What follows from a series of concept distances: noise floors, verdicts, figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Figure, Section, attach
from .rows import MEASURABLE, development_rows, reference_index, statement

__all__ = ["filled_steps", "summarise_concepts"]

_TITLES = {"svd": "SVD", "pca": "PCA", "ica": "ICA", "nmf": "NMF", "sae": "Sparse autoencoder"}


def summarise_concepts(data: xr.Dataset, extractor: str, names: Sequence[str]) -> xr.Dataset:
    """Return the stacked cells of `Concepts` with floors, chart rows, words and figures."""
    title = _TITLES.get(extractor, extractor.replace("-", " ").capitalize())
    main = "procrustes" if "procrustes" in names else names[0]
    data = _with_bands(data)
    headline = data.relative_distance.sel(distance=main, alignment="rotation removed", drop=True)
    spread = data.floor.sel(distance=main, alignment="rotation removed", drop=True)
    layers = [str(layer) for layer in data.layer.values]
    data = data.assign(
        development_rows(
            [f"{layer} · {title} concepts" for layer in layers],
            layers,
            data.step.values,
            headline.transpose("layer", "step").values,
            floor=np.nan_to_num(spread.values) + MEASURABLE,
            reference_index=reference_index(data),
            settled=data.refit_high.sel(distance=main, alignment="rotation removed")
            .transpose("layer", "step")
            .values,
        )
    )
    data.relative_distance.attrs.update(long_name="distance relative to the norms", units="1")
    data.distance_to_reference.attrs.update(long_name="distance to the reference step")
    data.reconstruction_error.attrs.update(
        long_name="reconstruction error, relative", units="1", symbol="‖A − UWᵀ‖ / ‖A‖"
    )
    words = statement(data, f"The {title} concepts of {{layer}}") + _convergence(data)
    return attach(data, _section(title, main), _figures(names), words)


def _with_bands(data: xr.Dataset) -> xr.Dataset:
    """Add what refitting gives at every step, interpolated between the steps where it was done."""
    measured = data.get("refit_distance")
    if measured is None:
        raise ValueError("no step measured the noise floor")
    # Spread of the curve itself over refits, pooled over the steps where it was measured.
    variances = data.refit_to_reference.var("refit", ddof=1)
    floor = 2.0 * np.sqrt(2.0) * np.sqrt(variances.mean("step"))
    return data.assign(
        floor=floor,
        low=(data.relative_distance - floor).clip(min=0),
        high=data.relative_distance + floor,
        refit_low=filled_steps(measured.min("refit")),
        refit_high=filled_steps(measured.max("refit")),
        chance_low=filled_steps(data.chance_distance.min("draw")),
        chance_high=filled_steps(data.chance_distance.max("draw")),
    )


def filled_steps(values: xr.DataArray) -> xr.DataArray:
    """Interpolate over the order of the steps; beyond the measured ones the nearest holds."""
    moved = values.transpose(..., "step")
    table = moved.values.reshape(-1, moved.sizes["step"])
    order = np.arange(table.shape[1])
    filled = np.full(table.shape, np.nan)
    for row, target in zip(table, filled, strict=True):
        known = np.isfinite(row)
        if known.any():
            target[:] = np.interp(order, order[known], row[known])
    return moved.copy(data=filled.reshape(moved.shape))


def _figures(names: Sequence[str]) -> list[Figure]:
    bands = [
        Band("refit_low", "refit_high", "refitting alone"),
        Band("chance_low", "chance_high", "chance"),
    ]
    figures: list[Figure] = [
        Curves(
            name,
            f"{name.replace('-', ' ').capitalize()} distance to the reference step",
            value="relative_distance",
            facet="alignment",
            select={"distance": name},
            interval=("low", "high"),
            bands=bands,
            caption="Relative to the norms. Left as the solver returned them, then with concepts "
            "permuted and signed, then with the rotation of the activations removed as well.",
        )
        for name in names
    ]
    figures.append(
        Curves(
            "absolute",
            "The same distances, absolute",
            value="distance_to_reference",
            facet="alignment",
            select={"distance": names[0]},
            caption="Not divided by the norms, which grow in training.",
        )
    )
    figures.append(
        Curves(
            "reconstruction",
            "Reconstruction error",
            value="reconstruction_error",
            caption="Fraction of the norm of the activations that the concepts leave out.",
        )
    )
    return figures


def _section(title: str, main: str) -> Section:
    return Section(
        title=f"{title} concepts",
        definition=f"A dictionary W of concepts is fitted to the activations of each layer at "
        f"each step, and compared with the reference step's. The verdict uses the {main} "
        "distance with the rotation removed.",
        symbol="Aₜ ≈ UₜWₜᵀ,  d(Wₜ, W_ref) / √(‖Wₜ‖² + ‖W_ref‖²)",
        null="Grey: refitting at the same step on resampled tokens (and with other seeds, where "
        "the solver has any), and chance: the same dictionary in a random basis, or against "
        "tokens out of order.",
        care="As returned, a distance measures mostly order, sign and rotation. It is 0 at the "
        "reference step by definition; that step is left out of the verdict.",
        source="Bernas 2025, Algorithm 2, Defs 40 and 44",
    )


def _convergence(data: xr.Dataset) -> list[str]:
    fits = data.converged.values
    failed = int((fits == 0).sum())
    if not failed:
        return []
    return [f"{failed} of {int(np.isfinite(fits).sum())} fits did not converge."]
