"""How similar the layers of one checkpoint are to each other: CKA and its kin."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from ...errors import ArgumentError
from ...figures import Figure, Heatmap, Section
from ...observables.base import Reading
from ...observables.catalogued import PASS
from ...words.names import Names
from .similarity import LABELS, MEASURES, OfMeasures


@dataclass(frozen=True)
class LayerSimilarity(OfMeasures):
    """Similarity of the activations of every two layers at each checkpoint, on the same tokens.

    The measures are those of `Similarity`; CKA is the unbiased one. Rows of the chart are the
    similarities of each layer to the one before it. Errors: jackknife over ten blocks of texts.
    Null: tokens out of order.

    Parameters
    ----------
    layers
        Glob or globs over module paths; at least two layers.
    measures
        Some of ``"cka"``, ``"svcca"``, ``"pwcca"`` and ``"mutual-neighbours"``.
    on, tokens, max_tokens, random_state
        Which tokens; see `ontogeny.needs.Activations`.

    Examples
    --------
    >>> LayerSimilarity("model.layers.*.mlp").name
    'layer-similarity'
    """

    max_tokens: int | None = 1000

    measured: ClassVar[str] = "to_layer_before"
    other: ClassVar[str] = "the layer before"
    row: ClassVar[str] = f"similarity to {other}"
    kind: ClassVar[str] = "layer-similarity"
    question: ClassVar[str] = "How alike are the layers of a model, and since when?"
    price: ClassVar[str] = f"{PASS}, and every pair"
    variables: ClassVar[Names] = {"between": ("similarity between two layers", "1")}
    section: ClassVar[Section] = Section(
        title="Similarity between layers",
        definition="How far the activations of two layers arrange the same tokens alike.",
        symbol="CKA = ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖)",
        null="The layer before with its tokens out of order.",
        care="Layers that write into one stream are alike for that reason alone. A few directions "
        "with a large variance can hold CKA up.",
        source="Kornblith et al. 2019; Raghu et al. 2017; Morcos et al. 2018; Huh et al. 2024",
    )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the similarities of all pairs, and with noise and null those of neighbours."""
        need = self.activations
        values = reading[need]
        paths = list(values)
        if len(paths) < 2:
            raise ArgumentError(f"layers must match at least two layers; got {paths}.")

        pairs = {b: (values[b], values[a]) for a, b in itertools.pairwise(paths)}
        data = self.similarities(pairs, reading.units(need))
        arrays = [values[path].double().cpu().numpy() for path in paths]
        dims = ("measure", "of_layer", "with_layer")
        return data.assign(between=(dims, _between(arrays, self.measures))).assign_coords(
            of_layer=paths, with_layer=paths
        )

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Figure]:
        """Return all pairs of layers at some steps, a figure for each measure."""
        if "between" not in data:
            return []
        return [
            Heatmap(
                f"between-{measure}",
                f"{LABELS[measure][:1].upper()}{LABELS[measure][1:]} between layers",
                value="between",
                x="of_layer",
                y="with_layer",
                facet="step",
                square=True,
                select={"measure": measure},
            )
            for measure in self.measures
        ]


def _between(arrays: Sequence[np.ndarray], measures: Sequence[str]) -> np.ndarray:
    """Return the similarities (measures, layers, layers); PWCCA weighs by the first of two."""
    tables = np.ones((len(measures), len(arrays), len(arrays)))
    for table, name in zip(tables, measures, strict=True):
        for i, j in itertools.combinations(range(len(arrays)), 2):
            table[i, j] = table[j, i] = MEASURES[name](arrays[i], arrays[j])
            if name == "pwcca":
                table[j, i] = MEASURES[name](arrays[j], arrays[i])
    return tables
