"""What concepts of a single step are, where they are fitted to each step anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...observables.base import Reading, Run
from ...quantities import Quantity
from ...words.formats import joined, plural
from .describe.rows import orientation
from .described import near, tidied, vocabulary
from .describer import Describer, Untrained
from .meaning.naming import chosen_names

SHOWN = 6
"""Names in one sentence."""

KEPT_OF_STATE = ("piece_text", "concentration_untrained", "unnamed_because", "stands_in_because")

NAMED = Quantity(
    "named",
    "number of concepts with a name",
    "concepts",
    optional=True,
    minimum=0.0,
    caption="A name is given where a concept is sharper than 95 % of those of the untrained model "
    "in the same layer, and than permuted codes.",
)

Describe = Callable[[str, np.ndarray, np.ndarray], Mapping[str, Any]]


def with_untrained(
    state: xr.Dataset, run: Run, describer: Describer, codes: Callable[[torch.Tensor], np.ndarray]
) -> xr.Dataset:
    """Return a state with how sharp the concepts of the untrained model are.

    `codes` fits concepts to activations (n, m) and returns their codes (n, r). The state stays as
    it is where nothing is described.
    """
    if not describer.active:
        return state
    untrained = describer.untrained(run, codes)
    layers = []
    for path in state.layer.values:
        layers.append(xr.Dataset(untrained.variables(str(path))))
    stacked = xr.concat(layers, dim=state.layer, join="outer", data_vars="all", coords="minimal")
    return state.assign(stacked.data_vars).assign(piece_text=describer.pieces(run))


def describing(reading: Reading, state: xr.Dataset | None, describer: Describer) -> Describe:
    """Return what describes the concepts of a layer from its path, codes (n, r) and dictionary.

    Concepts are turned to the side where they are strong, see `ontogeny.describe.orientation`.
    """
    if state is None or not describer.active:
        return lambda path, codes, dictionary: {}
    texts, readouts = describer.texts(reading), describer.readouts(reading)
    pieces = [str(piece) for piece in state["piece_text"].values]

    def describe(path: str, codes: np.ndarray, dictionary: np.ndarray) -> Mapping[str, Any]:
        untrained = Untrained.stored(state.sel(layer=path), path)
        directions = (dictionary * orientation(codes)).T
        return {
            **texts.described(codes, untrained.by_layer.get(path), pieces),
            **texts.contexts(codes),
            **near(directions @ directions.T),
            **vocabulary(directions, readouts.get(path), texts.random_state),
        }

    return describe


def with_named(data: xr.Dataset) -> xr.Dataset:
    """Return a node with the number of concepts that have a name, (step, layer).

    NaN where none could get one; without it where that holds of all layers.
    """
    if "name" not in data:
        return data
    data = tidied(chosen_names(data))
    has_values = data["concentration"].notnull().any("concept") & (data["unnamed_because"] == "")
    if not has_values.any():
        return data
    return data.assign(named=(data["name"] != "").sum("concept").where(has_values))


def named_words(data: xr.Dataset) -> list[str]:
    """Return how many concepts of a single checkpoint got a name, and which, layer by layer."""
    if "name" not in data:
        return []
    sentences = []
    total = _name_words(data, f"{plural(data.sizes['layer'], 'layer')}")
    for layer in data.layer.values:
        one = data.sel(layer=layer).isel(step=0)
        if because := str(one.unnamed_because.item()):
            sentences.append(f"No concept of {layer} can get a name: {because}.")
        else:
            sentences.append(_name_words(one, str(layer)))
    return [total, *sentences] if len(sentences) > 1 and (data["name"] != "").any() else sentences


def _name_words(data: xr.Dataset, where: str) -> str:
    """Return how many got a name, and the names that most concepts have."""
    names = Counter(map(str, data["name"].values.ravel()))
    del names[""]
    count = int(data.concentration.notnull().sum())
    listed = joined([f"“{name}”" for name, _ in names.most_common(SHOWN)])
    some = f"{names.total()} of {count}" if names else f"None of the {count}"
    such = "" if not names else ": " if len(names) <= SHOWN else ", such as "
    return f"{some} concepts of {where} got a name{such}{listed}."
