"""Which attention heads copy the tokens that they look at, read from the weights alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...capture.ov_circuit import CopyingScores
from ...figures import Heatmap, Section
from ...needs import Need
from ...observables.base import Observable
from ...observables.catalogued import PresetEntry
from ...observables.variables import by_layer
from ...quantities import Measured, Quantity
from ...trees import Nodes
from .initial import at_first_step

_NULLS = {
    "permuted": "embeddings of other tokens",
    "first": "all heads at the first checkpoint",
}


@dataclass(frozen=True)
class CopyingHeads(Observable):
    """Copying score of every attention head: whether attention to a token raises its own logit.

    Of the map from tokens through a head's values to logits, the sum of the eigenvalues over the
    sum of their absolute values. Norms on the way are linear with their scale held fixed, and
    biases, positions and other layers are left out. For models whose stream is not normed after
    every layer, and that have a vocabulary map; others are refused with the reason.

    Parameters
    ----------
    layers
        Attention of some layers, such as ``"layers[0:12:3].attn"``; all by default.
    on
        Input set whose tokenizer says how many tokens there are; the first by default.
    n_draws, random_state
        How often the embeddings are permuted among the tokens for the null, and the seed.

    Notes
    -----
    N. Elhage et al. 2021, "A mathematical framework for transformer circuits".

    Examples
    --------
    >>> CopyingHeads().name
    'copying-heads'
    """

    layers: str | tuple[str, ...] = "attn"
    on: str | None = None
    n_draws: int = 3
    random_state: int = 0

    kind = "copying-heads"
    minima = {"n_draws": 1}
    question = "Which heads raise the token that they look at?"
    requires = "weights of a known family"
    price = "a product of both vocabulary matrices at each step"
    obstacles = ("no_copying",)
    presets = (PresetEntry(("circuits", "everything", "one-model"), {}, 240),)
    quantities = (
        Quantity(
            "strongest_copying",
            "copying score of the strongest head",
            rows="{layer} · copying head",
            noise="exact",
            nulls=_NULLS,
            caption="The highest score of the heads of a layer. The null of permuted embeddings is "
            "the highest score as well.",
        ),
        Quantity(
            "copying",
            "copying score of each head",
            noise="exact",
            nulls=_NULLS,
            figure=False,
        ),
    )
    section = Section(
        title="Copying heads",
        definition="Of the map from tokens through a head to logits: the sum of its eigenvalues "
        "over the sum of their absolute values. 1: attention to a token raises that token.",
        symbol="Σλ / Σ|λ|, λ of W_E W_V W_O W_Uᵀ",
        null="The same weights with embeddings permuted among the tokens, and all heads at the "
        "first checkpoint.",
        care="Weights alone: what a head looks at, other layers and positions are not in it, and "
        "norms have a fixed scale. Nothing is sampled, so a change counts beyond rounding.",
        source="Elhage et al. 2021",
    )
    charts = (
        Heatmap(
            "heads",
            "Copying score of every head",
            value="copying",
            y="head",
            facet="layer",
        ),
    )

    def needs(self) -> Sequence[Need]:
        """Return the scores."""
        return [CopyingScores(self.layers, self.on, self.n_draws, self.random_state)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the score of every head, and the highest of each layer."""

        def one(path: str, scores: np.ndarray) -> dict[str, Any]:
            heads = {"head": np.arange(scores.shape[1])}
            value = xr.DataArray(scores[0], dims="head", coords=heads)
            others = xr.DataArray(scores[1:], dims=("draw", "head"), coords=heads)
            return {
                "copying": Measured(value, nulls={"permuted": others}),
                "strongest_copying": Measured(
                    value.max(), nulls={"permuted": others.max("head")}
                ),
            }

        return by_layer(reading[self.needs()[0]], one)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with the scores of all heads at the first checkpoint."""
        first = at_first_step(data, "copying", ("layer", "head"))
        names = ("copying_first", "strongest_copying_first")
        return data.assign(dict.fromkeys(names, first)) if first is not None else data
