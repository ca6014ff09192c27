"""How spread out attention is, per layer and head (row C7's number, at every token)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...figures import Section
from ...needs import Attention, Need
from ...quantities import Measured, Quantity
from ..base import Observable, dataset


@dataclass(frozen=True)
class AttentionEntropy(Observable):
    """Entropy of the attention distribution in nats, mean over ordinary query tokens.

    Parameters
    ----------
    layers
        Glob over attention modules; by default all that return attention weights.
    on
        Input set; the first by default.

    Examples
    --------
    >>> AttentionEntropy().name
    'attention-entropy'
    """

    layers: str | tuple[str, ...] = "*"
    on: str | None = None

    kind: ClassVar[str] = "attention-entropy"
    version: ClassVar[int] = 2
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(
            "layer_entropy",
            "attention entropy, mean over heads",
            units="nats",
            rows="{layer} · attention entropy",
            subject="Attention in {layer}",
            nulls={"uniform": "uniform attention"},
            caption="One line per layer. Low: each token attends to few others.",
        ),
        Quantity(
            "entropy",
            "attention entropy",
            units="nats",
            heading="attention entropy of every head",
            nulls={"uniform": "uniform attention"},
            caption="One panel a head, one line a layer.",
        ),
    )
    section: ClassVar[Section] = Section(
        title="Attention entropy",
        definition="Entropy of each attention distribution over the tokens that it may see; mean "
        "over the ordinary tokens of all texts.",
        symbol="H = −Σⱼ aᵢⱼ log aᵢⱼ",
        null="Uniform attention over the visible tokens: mean log of their number, the grey line. "
        "A change counts beyond 1.96 standard errors of the paired difference over texts.",
        care="Sharp attention is no proxy for a solved task. Padding is never attended to here; "
        "special tokens can be.",
        source="Xu 2026, sec. 4.2, Fig. 2",
    )

    def needs(self) -> Sequence[Need]:
        """Return the reduced attention maps."""
        return [Attention(self.layers, self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the entropy per layer and head, their mean, and that of uniform attention."""
        maps = reading[self.needs()[0]]
        weights = maps.tokens.astype(np.float64)
        share = weights / weights.sum()
        entropy = (maps.entropy.astype(np.float64) * share).sum("text")
        uniform = {"uniform": (maps.uniform.astype(np.float64) * share).sum("text")}
        # A text without ordinary tokens has no entropy and no weight.
        of_text = maps.entropy.mean("head").astype(np.float64).where(maps.tokens > 0, 0.0)
        of_text = of_text.transpose(..., "text")
        mean = Measured.over_texts(
            entropy.mean("head"),
            of_text.values,
            maps.tokens.values,
            reading.units(self.needs()[0]),
            [str(dim) for dim in of_text.dims],
            uniform,
        )
        return dataset(
            {
                "layer_entropy": mean,
                "entropy": Measured(entropy, nulls=uniform),
            }
        )
