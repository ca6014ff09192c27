"""What follows from a series of concept distances: noise floors, verdicts, figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Figure, Section, attach
from ..summary import Names
from .rows import MEASURABLE, development_rows, reference_index, statement

__all__ = ["VARIABLES", "extractor_title", "filled_steps", "summarise_concepts"]

_TITLES = {"svd": "SVD", "pca": "PCA", "ica": "ICA", "nmf": "NMF", "sae": "Sparse autoencoder"}


VARIABLES: Names = {
    "dictionary": ("dictionary of concepts", "dictionary units"),
    "code_coordinates": ("codes in a basis of both steps", "code units"),
    "codes": ("codes", "code units"),
    "norm": ("norm of the dictionary", "dictionary units"),
    "iterations": ("iterations of the solver", "iterations"),
    "converged": ("whether the solver converged", "1"),
    "distance_to_reference": ("distance to the reference step", "dictionary units"),
    "relative_distance": ("distance relative to the norms", "1"),
    "reconstruction_error": ("reconstruction error, relative", "1"),
    "correlation_to_reference": ("correlation with the reference step's concepts", "1"),
    "refit_distance": ("relative distance of refits to the fit", "1"),
    "refit_to_reference": ("relative distance of refits to the reference", "1"),
    "chance_distance": ("relative distance by chance", "1"),
    "refit_norm": ("norm of the refitted dictionary", "dictionary units"),
    "refit_error": ("reconstruction error of refits, relative", "1"),
    "refit_dictionary": ("refitted dictionary", "dictionary units"),
    "refit_correlation": ("correlation of refits with the fit", "1"),
    "chance_correlation": ("correlation by chance", "1"),
    "refit_transform_distance": ("change of the transform by refitting", "1"),
    "refit_log_det": ("log-determinant of the transform of refits", "1"),
    "refit_condition": ("condition number of the transform of refits", "1"),
    "refit_share": ("share of the squared change by refitting", "1"),
    "correlation_refit": ("correlation of refits with the fit", "1"),
    "correlation_chance": ("correlation by chance", "1"),
    "absolute": ("distance to the reference step", "dictionary units"),
    "absolute_refit": ("distance of refits to the fit", "dictionary units"),
    "absolute_chance": ("distance by chance", "dictionary units"),
    "error": ("reconstruction error of refits", "1"),
    "floor": ("noise of a change of the relative distance", "1"),
    "low": ("relative distance, lower end", "1"),
    "high": ("relative distance, upper end", "1"),
    "refit_low": ("relative distance of refits, lower end", "1"),
    "refit_high": ("relative distance of refits, upper end", "1"),
    "chance": ("relative distance by chance", "1"),
}
"""What the variables of a `Concepts` node are, and their units."""


def extractor_title(extractor: str) -> str:
    """Return an extractor's name as headings write it.

    Examples
    --------
    >>> extractor_title("ica"), extractor_title("sparse-pca")
    ('ICA', 'Sparse pca')
    """
    return _TITLES.get(extractor, extractor.replace("-", " ").capitalize())


def summarise_concepts(data: xr.Dataset, extractor: str, names: Sequence[str]) -> xr.Dataset:
    """Return the stacked cells of `Concepts` with floors, chart rows, words and figures."""
    title = extractor_title(extractor)
    main = "procrustes" if "procrustes" in names else names[0]
    noisy = "refit_distance" in data
    data = _with_bands(data) if noisy else data
    chosen = {"distance": main, "alignment": "rotation removed"}
    headline = data.relative_distance.sel(chosen, drop=True).transpose("layer", "step").values
    floor, settled = np.array(MEASURABLE), None
    if noisy:
        floor = np.nan_to_num(data.floor.sel(chosen, drop=True).values) + MEASURABLE
        settled = data.refit_high.sel(chosen).transpose("layer", "step").values
    layers = [str(layer) for layer in data.layer.values]
    data = data.assign(
        development_rows(
            [f"{layer} · {title} concepts" for layer in layers],
            layers,
            data.step.values,
            headline,
            floor=floor,
            reference_index=reference_index(data),
            settled=settled,
        )
    )
    data.reconstruction_error.attrs.update(symbol="‖A − UWᵀ‖ / ‖A‖")
    correlations: list[str] = []
    if "correlation_to_reference" in data:
        data = _with_correlations(data, noisy)
        correlations = [str(name) for name in data.correlation.values]
    words = statement(data, f"The {title} concepts of {{layer}}") + _convergence(data)
    words += [] if noisy else ["Noise floors were switched off: changes are not judged by them."]
    figures = [*_figures(names, noisy), *_correlation_figures(correlations, noisy)]
    return attach(data, _section(title, main), figures, words)


def _with_correlations(data: xr.Dataset, noisy: bool) -> xr.Dataset:
    if not noisy:
        return data
    refit, chance = data.refit_correlation, data.chance_correlation
    return data.assign(
        correlation_refit_low=filled_steps(refit.min("refit")),
        correlation_refit_high=filled_steps(refit.max("refit")),
        correlation_chance_low=filled_steps(chance.min("draw")),
        correlation_chance_high=filled_steps(chance.max("draw")),
    )


def _correlation_figures(names: Sequence[str], noisy: bool) -> list[Figure]:
    bands = [
        Band("correlation_refit_low", "correlation_refit_high", "refitting alone"),
        Band("correlation_chance_low", "correlation_chance_high", "chance"),
    ]
    figures: list[Figure] = []
    for name in names:
        own = name == "internal"  # of this step's concepts alone: no alignment, and no chance
        kept = bands[: 1 if own else 2] if noisy else []
        figures.append(
            Curves(
                f"{name}-correlation",
                f"{name.capitalize()} correlation "
                + ("among the concepts of a step" if own else "with the reference step's concepts"),
                value="correlation_to_reference",
                facet=None if own else "alignment",
                select={"correlation": name} | ({"alignment": "as returned"} if own else {}),
                bands=kept,
                caption=_CORRELATED[name],
            )
        )
    return figures


_CORRELATED = {
    "columnwise": "Mean |cosine| of equal columns, which depends on the order of the concepts.",
    "optimal": "Mean |cosine| of the columns after the best one-to-one assignment.",
    "weighted": "The same, each of the reference's concepts weighted by its share of the "
    "reference's absolute codes.",
    "internal": "Mean |cosine| of every concept with its match among the others: how redundant "
    "the dictionary is.",
}


def _with_bands(data: xr.Dataset) -> xr.Dataset:
    """Add what refitting gives at every step, interpolated between the steps where it was done."""
    measured, floor = data.refit_distance, _floor(data)
    # Values of a step relative to the norms of its dictionary and the reference's, made absolute.
    at = reference_index(data)
    norm_ref = data.norm.isel(step=at, drop=True) if at is not None else np.nan
    scale = np.sqrt(data.norm**2 + norm_ref**2)
    absolute = measured * np.sqrt(data.norm**2 + data.refit_norm**2)
    chance = data.chance_distance * scale
    return data.assign(
        absolute_low=(data.distance_to_reference - floor * scale).clip(min=0),
        absolute_high=data.distance_to_reference + floor * scale,
        absolute_refit_low=filled_steps(absolute.min("refit")),
        absolute_refit_high=filled_steps(absolute.max("refit")),
        absolute_chance_low=filled_steps(chance.min("draw")),
        absolute_chance_high=filled_steps(chance.max("draw")),
        error_low=filled_steps(data.refit_error.min("refit")),
        error_high=filled_steps(data.refit_error.max("refit")),
        floor=floor,
        low=(data.relative_distance - floor).clip(min=0),
        high=data.relative_distance + floor,
        refit_low=filled_steps(measured.min("refit")),
        refit_high=filled_steps(measured.max("refit")),
        chance_low=filled_steps(data.chance_distance.min("draw")),
        chance_high=filled_steps(data.chance_distance.max("draw")),
    )


def _floor(data: xr.Dataset) -> xr.DataArray:
    """Return two standard errors of a change: of the noisiest kind of refit, pooled over steps.

    Kinds are judged apart: a solver that ignores its seed would dilute what resampling shows.
    """
    deviation = data.refit_to_reference - data.relative_distance
    kinds = np.array([str(name).split(" ")[0] for name in data.refit.values])
    variances = []
    for kind in dict.fromkeys(kinds):
        chosen = deviation.isel(refit=np.flatnonzero(kinds == kind))
        # One refit has no spread of its own; how far it lies from the fit stands for it.
        spread = (
            chosen.var("refit", ddof=1) if chosen.sizes["refit"] > 1 else chosen.isel(refit=0) ** 2
        )
        variances.append(spread.mean("step"))
    largest = xr.concat(variances, dim="kind").max("kind")
    return 2.0 * np.sqrt(2.0) * np.sqrt(largest)


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


def _figures(names: Sequence[str], noisy: bool) -> list[Figure]:
    bands = [
        Band("refit_low", "refit_high", "refitting alone"),
        Band("chance_low", "chance_high", "chance"),
    ]
    bands = bands if noisy else []
    absolute = [Band(f"absolute_{b.lower}", f"absolute_{b.upper}", b.label) for b in bands]
    errors = [Band("error_low", "error_high", "refitting alone")] if noisy else []
    figures: list[Figure] = [
        Curves(
            name,
            f"{name.replace('-', ' ').capitalize()} distance to the reference step",
            value="relative_distance",
            facet="alignment",
            select={"distance": name},
            interval=("low", "high") if noisy else None,
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
            interval=("absolute_low", "absolute_high") if noisy else None,
            bands=absolute,
            caption="Not divided by the norms, which grow in training.",
        )
    )
    figures.append(
        Curves(
            "reconstruction",
            "Reconstruction error",
            value="reconstruction_error",
            bands=errors,
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
        null="Grey: refitting at the same step on resampled tokens, in the other floating-point "
        "precision (and with other seeds, where the solver has any), and chance: the same "
        "dictionary in a random basis, or against tokens out of order.",
        care="As returned, a distance measures mostly order, sign and rotation. It is 0 at the "
        "reference step by definition; that step is left out of the verdict.",
        source="Bernas 2025, Algorithm 2, Defs 40 and 44, 49-52, Figs 13-15 and 17",
    )


def _convergence(data: xr.Dataset) -> list[str]:
    fits = data.converged.values
    failed = int((fits == 0).sum())
    if not failed:
        return []
    return [f"{failed} of {int(np.isfinite(fits).sum())} fits did not converge."]
