"""Dictionaries beside those of the reference step, in three alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from ... import distances
from ...distances.features import FeatureRotation
from ...distances.nearest import matched
from .noise import ROTATION_REMOVED, Fitted


@dataclass(frozen=True)
class Comparison:
    """Distances and correlations of dictionaries.

    Parameters
    ----------
    distances
        Names of distances.
    correlations
        Names of correlations with the other's concepts; ``"internal"`` is that of its own.
    """

    distances: tuple[str, ...]
    correlations: tuple[str, ...]

    def of(
        self, W: torch.Tensor, other: Fitted, turn: FeatureRotation | None
    ) -> xr.Dataset:
        """Return distances of W to the other dictionary, also relative, and correlations."""
        V = other.dictionary
        aligned = {
            "as returned": W,
            "matched": matched(V, W),
            ROTATION_REMOVED: matched(V, W if turn is None else turn.of_columns(W)),
        }

        pairs = [name for name in self.correlations if name != "internal"]
        codes = other.codes if "weighted" in pairs else None
        measures = (*self.distances, *pairs)
        # All measures of one alignment at once: they share its factorisations.
        values = [
            distances.compare(V, X, codes, measures=measures) for X in aligned.values()
        ]

        def table(dim: str, names: Sequence[str]) -> xr.DataArray:
            rows = [[value[name] for value in values] for name in names]
            coords = {dim: list(names), "alignment": list(aligned)}
            return xr.DataArray(np.array(rows), dims=(dim, "alignment"), coords=coords)

        norm = float((W.square().sum() + V.square().sum()).sqrt())
        apart = table("distance", self.distances)
        variables = {"distance_to_reference": apart, "relative_distance": apart / norm}
        if pairs:
            variables["correlation_to_reference"] = table("correlation", pairs)
        if "internal" in self.correlations:
            variables["internal_correlation"] = xr.DataArray(
                distances.correlation("internal", W)
            )
        return xr.Dataset(variables)
