"""How far the concepts of any two steps are apart: step by step, and to the step before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ontogeny import distances
from ontogeny.figures import Figure, Heatmap, Section
from ontogeny.observables.arguments import check_names
from ontogeny.observables.catalogued import PresetEntry
from ontogeny.observables.readings import SeriesReading
from ontogeny.quantities import Quantity
from ontogeny.trees import Nodes

from ...distances.alignment import aligned_to
from .series import ConceptSeries, finished_dictionaries


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

    Examples
    --------
    >>> ConceptDistances("concepts-ica").name
    'concepts-ica-distances'
    """

    measures: tuple[str, ...] = ("frobenius", "procrustes", "optimal")

    kind = "concept-distances"
    question = "How far are the concepts of every two checkpoints from each other?"
    fewest_steps = 2
    presets = (PresetEntry(("everything",), {"of": "concepts-ica"}, 90),)
    suffix = "distances"
    quantities = (
        Quantity(
            "to_previous",
            "distance to the {checkpoint} before, relative to the norms",
            per="distance",
            heading="{label}: to the checkpoint before",
            nulls={"refit": "refitting alone"},
            caption="Spacing of the checkpoints matters: neighbours are nearer where checkpoints "
            "are denser.",
        ),
    )
    variables = {
        "between": (
            "distance between the concepts of two {checkpoint}s, relative to the norms",
            "1",
        )
    }
    section = Section(
        title="Concepts {checkpoint} by {checkpoint} ({of})",
        definition="Distance between the concept dictionaries of any two checkpoints.",
        symbol="d(Wₛ, Wₜ) / √(‖Wₛ‖² + ‖Wₜ‖²)",
        null="Grey: refitting at one {checkpoint} on resampled texts, or with other seeds.",
        care="A rotation of the activations shows here as movement; the curves to the reference "
        "{checkpoint} remove it. Correlations are 1 where concepts are the same; their grey band "
        "needs the same correlation in the concepts' node.",
        source="Bernas 2025, Defs 40-52",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_names("measures", self.measures)
        distances.pairwise(
            np.eye(3)[None, :, :2] * np.ones((2, 1, 1)), measures=self.measures
        )

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return ``between(distance, step, step_)`` and ``to_previous(distance, step)``."""
        steps, _, W, reference = finished_dictionaries(reading)
        stack = aligned_to(W[reference], W)
        between = distances.pairwise(
            stack, steps=steps, measures=self.measures, workers=1
        )
        norms = np.sqrt((stack**2).sum((1, 2)))
        scale = np.sqrt(norms[:, None] ** 2 + norms[None, :] ** 2)
        is_distance = np.isin(self.measures, distances.names())
        relative = between.values / np.where(is_distance[:, None, None], scale, 1.0)
        values = between.copy(data=relative)
        previous = np.full((len(self.measures), len(steps)), np.nan)
        previous[:, 1:] = np.diagonal(relative, offset=-1, axis1=1, axis2=2)
        return xr.Dataset(
            {"between": values, "to_previous": (("distance", "step"), previous)}
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add what refits at one step give, for those measures that the concepts' node has too."""
        of = nodes[self.of]
        refits = []
        if "relative_distance_refit" in of:
            refits.append(
                of.relative_distance_refit.sel(alignment="matched", drop=True)
            )
        if "correlation_to_reference_refit" in of:
            matched = of.correlation_to_reference_refit.sel(
                alignment="matched", drop=True
            )
            refits.append(matched.rename(correlation="distance"))
        if "internal_correlation_refit" in of:
            refits.append(
                of.internal_correlation_refit.expand_dims(distance=["internal"])
            )
        if not refits:
            return data
        to_previous = xr.concat(refits, dim="distance").reindex(
            distance=list(self.measures)
        )
        return data.assign(to_previous_refit=to_previous)

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the maps of every step with every other."""
        return [
            Heatmap(
                f"between-{measure}",
                f"{measure.capitalize()}: every {{checkpoint}} with every other",
                value="between",
                x="step",
                y="step_",
                facet="layer",
                select={"distance": measure},
                caption="Concepts permuted and signed to fit the reference {checkpoint}'s.",
            )
            for measure in self.measures
        ]
