"""From which layer on the prediction is there: the logit lens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Section
from ...needs import Need
from ...observables.base import Observable
from ...observables.catalogued import PresetEntry
from ...observables.variables import by_layer
from ...quantities import Measured, Quantity
from .lens_reading import LayerPredictions, LensReading


@dataclass(frozen=True)
class LogitLens(Observable):
    """Loss of what the stream predicts after every layer, and its distance to the prediction.

    The stream after a layer is given to the last norm and the vocabulary map, and to a masked
    model's head, as if later layers added nothing.

    Parameters
    ----------
    layers
        Sites of the stream; by default after every block.
    on
        Input set; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    max_tokens, random_state
        Predicted tokens that are kept, drawn once; and the seed, also of which tokens are masked.

    Notes
    -----
    nostalgebraist 2020, "interpreting GPT: the logit lens".

    Examples
    --------
    >>> LogitLens().name
    'logit-lens'
    """

    layers: str | tuple[str, ...] = "resid"
    on: str | None = None
    objective: str = "auto"
    max_tokens: int | None = 1000
    random_state: int = 0

    kind = "logit-lens"
    question = "From which layer on is the prediction there?"
    requires = "texts, a known family with a vocabulary head"
    price = "the vocabulary head once for each layer, at each step"
    obstacles = ("no_prediction", "no_way_to_logits")
    presets = (PresetEntry(("circuits", "everything"), place=270),)
    quantities = (
        Quantity(
            "lens_loss",
            "loss of what a layer predicts",
            units="nats per {token}",
            rows="{layer} · lens loss",
            better="lower",
            nulls={"elsewhere": "predicted at other tokens"},
            caption="The last layer is the model's own loss on these tokens.",
        ),
        Quantity(
            "lens_divergence",
            "distance to the model's prediction",
            units="nats per {token}",
            symbol="D(p ‖ pₗ)",
            minimum=0.0,
            caption="Kullback-Leibler divergence of the model's prediction from the layer's.",
        ),
    )
    section = Section(
        title="Logit lens",
        definition="Loss of the prediction that is read off the stream after each layer, through "
        "the last norm and the vocabulary map.",
        symbol="pₗ = softmax(W_U N(xₗ))",
        null="What the layer predicts at other, randomly chosen tokens: it keeps how often tokens "
        "occur and loses the context.",
        care="A layer may know what the vocabulary map cannot read yet: a high loss is no proof of "
        "ignorance, and early layers are off by construction.",
        source='nostalgebraist 2020, "interpreting GPT: the logit lens"',
    )

    def needs(self) -> Sequence[Need]:
        """Return the predictions of the layers."""
        arguments = (
            self.layers,
            self.on,
            self.objective,
            self.max_tokens,
            self.random_state,
        )
        return [LayerPredictions(*arguments)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return loss and divergence of every layer."""
        lens: LensReading = reading[self.needs()[0]]

        def one(path: str, values: np.ndarray) -> dict[str, Measured]:
            loss, apart, elsewhere = values
            null = {"elsewhere": float(elsewhere.mean())}
            return {
                "lens_loss": Measured.mean(loss, lens.unit, null),
                "lens_divergence": Measured.mean(apart, lens.unit),
            }

        return by_layer(lens.layers, one)
