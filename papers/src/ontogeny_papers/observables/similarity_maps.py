"""How similar layers are to each other, and each to itself at every two checkpoints: CKA."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny.features.activations.similarity import (
    BLOCKS,
    LABELS,
    MEASURES,
    OfMeasures,
)
from ontogeny.figures import Figure, Heatmap, Section
from ontogeny.observables import Reading, by_layer
from ontogeny.observables.catalogued import PASS
from ontogeny.observables.of_activations import OfSampledActivations
from ontogeny.trees import Nodes
from ontogeny.units import Units

from ..distances.equivalences import cka_of_grams

_GRAM = "gram"


@dataclass(frozen=True)
class StepSimilarity(OfSampledActivations):
    """Unbiased CKA of every layer between every two checkpoints, on the same tokens.

    The matrix of a run that changes at once has two blocks, that of one which drifts fades away
    from its diagonal. Errors: jackknife over ten blocks of texts. Null: tokens out of order.

    Parameters
    ----------
    layers
        Glob or globs over module paths.
    on, tokens, random_state
        Which tokens; see `ontogeny.needs.Activations`.
    max_tokens
        Tokens that are compared. Every cell holds as many numbers squared for each layer.

    Examples
    --------
    >>> StepSimilarity("model.layers.*.mlp").name
    'step-similarity'
    """

    max_tokens: int = field(default=200, kw_only=True)

    kind = "step-similarity"
    minima = {"max_tokens": 8}
    question = (
        "Which checkpoints arrange tokens alike, and where does that change at once?"
    )
    variables = {
        "between": ("similarity between two {checkpoint}s", "1"),
        "between_shuffled": (
            "similarity between two {checkpoint}s: tokens out of order",
            "1",
        ),
    }
    section = Section(
        title="Similarity between {checkpoint}s",
        definition="How far the activations of a layer at two checkpoints arrange the same tokens "
        "alike.",
        symbol="CKA = HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)), unbiased",
        null="The same with the tokens of one checkpoint out of order.",
        care="A few directions with a large variance can hold CKA up alone.",
        source="Kornblith et al. 2019; Nguyen et al. 2021",
    )
    charts = tuple(
        Heatmap(name, title, value=value, y="step_", facet="layer", square=True)
        for name, title, value in (
            ("between", "CKA between {checkpoint}s", "between"),
            (
                "shuffled",
                "CKA between {checkpoint}s, tokens of one {checkpoint} out of order",
                "between_shuffled",
            ),
        )
    )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the inner products of all tokens in every layer, and the unit of each token."""

        def one(path: str, activations: torch.Tensor) -> dict[str, Any]:
            centred = activations.double() - activations.double().mean(dim=0)
            gram = centred @ centred.T
            size = gram.diagonal().sum().clamp_min(torch.finfo(torch.float64).tiny)
            return {_GRAM: (("token", "token_"), (gram / size).float().cpu().numpy())}

        need = self.activations
        return by_layer(reading[need], one).assign(unit=("token", reading.units(need)))

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the similarities of all steps in place of the inner products."""
        if _GRAM not in data:
            return data
        grams = (
            data[_GRAM]
            .transpose("layer", "step", "token", "token_")
            .values.astype(float)
        )
        units = Units(data["unit"].dropna("step").isel(step=0).values)
        order = np.random.default_rng([self.random_state, 17]).permutation(
            units.place.size
        )
        tables = np.stack([_of_layer(gram, units, order) for gram in grams], axis=1)
        dims = ("layer", "step", "step_")
        names = ("between", "between_stderr", "between_shuffled")
        values = {
            name: (dims, table) for name, table in zip(names, tables, strict=True)
        }
        return (
            data.drop_vars([_GRAM, "unit"])
            .assign_coords(step_=data.step.values)
            .assign(values)
        )


def _of_layer(grams: np.ndarray, units: Units, order: np.ndarray) -> np.ndarray:
    """Return similarities (steps, steps), their errors, and those of tokens out of order.

    NaN at steps that are missing.
    """
    there = np.flatnonzero(np.isfinite(grams).all(axis=(1, 2)))
    tables = np.full((3, len(grams), len(grams)), np.nan)
    if len(there):
        at = np.ix_(there, there)
        grams = grams[there]
        tables[0][at] = cka_of_grams(grams)
        blocks = units.blocks(BLOCKS)
        if len(blocks) > 1:
            rest = [np.delete(np.arange(len(order)), block) for block in blocks]
            left_out = [cka_of_grams(grams[:, rows][:, :, rows]) for rows in rest]
            tables[1][at] = np.sqrt((len(blocks) - 1) * np.var(left_out, axis=0))
        tables[2][at] = cka_of_grams(grams, grams[:, order][:, :, order])
    return tables


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

    max_tokens: int | None = field(default=1000, kw_only=True)

    measured = "to_layer_before"
    other = "the layer before"
    row = f"similarity to {other}"
    kind = "layer-similarity"
    question = "How alike are the layers of a model, and since when?"
    price = f"{PASS}, and every pair"
    variables = {"between": ("similarity between two layers", "1")}
    section = Section(
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
        return data.assign(
            between=(dims, _between(arrays, self.measures))
        ).assign_coords(of_layer=paths, with_layer=paths)

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
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
