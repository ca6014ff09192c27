"""How far the concepts of any two steps are apart: step by step, and to the step before (A4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from .. import distances
from ..figures import Band, Curves, Heatmap, Section, attach
from ..summary import Names
from .arguments import check_names
from .base import SeriesReading
from .concept_figures import filled_steps
from .concept_series import ConceptSeries, finished_dictionaries

__all__ = ["ConceptDistances"]


@dataclass(frozen=True)
class ConceptDistances(ConceptSeries):
    """All pairs of steps of a `Concepts` node, and each step beside the one before it.

    Concepts of all steps are first permuted and signed to fit the reference step's, so that a
    distance which sees their order compares like with like. Values are relative to the norms,
    ``d(W_s, W_t) / sqrt(|W_s|^2 + |W_t|^2)``; correlations stay as they are.

    Parameters
    ----------
    of
        Name of the `Concepts` node.
    measures
        Names of distances and correlations, see `ontogeny.distances.pairwise`.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> ConceptDistances("concepts-ica").name
    'concepts-ica-distances'
    """

    measures: tuple[str, ...] = ("frobenius", "procrustes", "optimal")

    label: str | None = None

    kind: ClassVar[str] = "concept-distances"
    variables: ClassVar[Names] = {
        "between": ("distance between the concepts of two steps, relative to the norms", "1"),
        "to_previous": ("distance to the step before, relative to the norms", "1"),
        "refit": ("distance of refits at one step", "1"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names("measures", self.measures)
        distances.pairwise(np.eye(3)[None, :, :2] * np.ones((2, 1, 1)), measures=self.measures)

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return ``between(distance, step, step_)`` and ``to_previous(distance, step)``."""
        steps, _, W, reference = finished_dictionaries(reading)
        base = np.broadcast_to(W[reference], W.shape)
        stack = distances.align(base, W, under="signed-permutation").aligned
        between = distances.pairwise(stack, steps=steps, measures=self.measures, workers=1)
        norms = np.sqrt((stack**2).sum((1, 2)))
        scale = np.sqrt(norms[:, None] ** 2 + norms[None, :] ** 2)
        is_distance = np.isin(self.measures, distances.names())
        relative = between.values / np.where(is_distance[:, None, None], scale, 1.0)
        values = between.copy(data=relative)
        previous = np.full((len(self.measures), len(steps)), np.nan)
        previous[:, 1:] = np.diagonal(relative, offset=-1, axis1=1, axis2=2)
        return xr.Dataset({"between": values, "to_previous": (("distance", "step"), previous)})

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add what refitting at one step gives, and the figures."""
        bands = _refit_bands(nodes[self.of], self.measures)
        data = data.assign(bands)
        known = [m for m in self.measures if bands and _is_known(bands["refit_low"], m)]
        grey = [Band("refit_low", "refit_high", "refitting alone")]
        figures: list[Any] = [
            Curves(
                f"previous-{measure}",
                f"{measure.capitalize()}: to the checkpoint before",
                value="to_previous",
                select={"distance": measure},
                bands=grey if measure in known else [],
                caption="Spacing of the checkpoints matters: neighbours are nearer where "
                "checkpoints are denser.",
            )
            for measure in self.measures
        ]
        figures += [
            Heatmap(
                f"between-{measure}",
                f"{measure.capitalize()}: every step with every other",
                value="between",
                x="step",
                y="step_",
                facet="layer",
                select={"distance": measure},
                caption="Concepts permuted and signed to fit the reference step's.",
            )
            for measure in self.measures
        ]
        section = Section(
            title=f"Concepts step by step ({self.of})",
            definition="Distance between the concept dictionaries of any two checkpoints.",
            symbol="d(Wₛ, Wₜ) / √(‖Wₛ‖² + ‖Wₜ‖²)",
            null="Grey: refitting at one step on resampled tokens, or with other seeds.",
            care="A rotation of the activations shows here as movement; the curves to the "
            "reference step remove it. Correlations are 1 where concepts are the same; their grey "
            "band needs the same correlation in the concepts' node.",
            source="Bernas 2025, Defs 40-52",
        )
        return attach(data, section, figures)


def _refit_bands(of: xr.Dataset, measures: Sequence[str]) -> dict[str, xr.DataArray]:
    """Return what refits at one step give, for those measures that the other node has too."""
    pieces = []
    for name, dim in (("refit_distance", "distance"), ("refit_correlation", "correlation")):
        known = [m for m in measures if name in of and m in of[dim].values]
        if known:
            found = of[name].sel({dim: known}).sel(alignment="matched", drop=True)
            pieces.append(found.rename({dim: "distance"} if dim != "distance" else {}))
    if not pieces:
        return {}
    refit = xr.concat(pieces, dim="distance")
    ends = {"refit_low": refit.min("refit"), "refit_high": refit.max("refit")}
    return {
        name: filled_steps(values).reindex(distance=list(measures)) for name, values in ends.items()
    }


def _is_known(low: xr.DataArray, measure: str) -> bool:
    return bool(low.sel(distance=measure).notnull().any())
