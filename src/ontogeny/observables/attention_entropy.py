"""How spread out attention is, per layer and head (row C7's number, at every token)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Section, attach
from ..needs import Attention, Need
from .attributes import Names
from .base import Observable
from .rows import development_rows, paired_floor, paired_stderr, statement

__all__ = ["AttentionEntropy"]


@dataclass(frozen=True)
class AttentionEntropy(Observable):
    """Entropy of the attention distribution in nats, mean over ordinary query tokens.

    Parameters
    ----------
    layers
        Glob over attention modules; by default all that return attention weights.
    on
        Input set; the first by default.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> AttentionEntropy().name
    'attention-entropy'
    """

    layers: str | tuple[str, ...] = "*"
    on: str | None = None
    label: str | None = None

    kind: ClassVar[str] = "attention-entropy"
    variables: ClassVar[Names] = {
        "entropy": ("attention entropy", "nats"),
        "entropy_of_text": ("attention entropy on each text", "nats"),
        "uniform": ("attention entropy of uniform attention", "nats"),
        "layer_entropy": ("attention entropy", "nats"),
        "query_tokens": ("query tokens of the text", "tokens"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs()

    def needs(self) -> Sequence[Need]:
        """Return the reduced attention maps."""
        return [Attention(self.layers, self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the entropy per layer and head, per layer and text, and that of no attention."""
        maps = reading[self.needs()[0]]
        weights = maps.tokens.astype(np.float64)
        share = weights / weights.sum()
        of_text = maps.entropy.mean("head").astype(np.float64)
        return xr.Dataset(
            {
                "entropy": (maps.entropy.astype(np.float64) * share).sum("text"),
                "entropy_of_text": of_text,
                "uniform": (maps.uniform.astype(np.float64) * share).sum("text"),
                "query_tokens": maps.tokens,
            }
        )

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add the mean over heads, the development rows and figures."""
        weights = data.query_tokens.max("step").values
        layers = [str(layer) for layer in data.layer.values]
        per_text = data.entropy_of_text.transpose("layer", "step", "text").values
        mean = data.entropy.mean("head").transpose("layer", "step")
        floor = np.stack([paired_floor(values, weights) for values in per_text])
        data = data.assign(
            layer_entropy=mean,
            layer_entropy_stderr=mean.copy(data=paired_stderr(per_text, weights)),
            **development_rows(
                [f"{layer} · attention entropy" for layer in layers],
                layers,
                data.step.values,
                mean.values,
                floor=floor,
            ),
        )
        return attach(data, _SECTION, _FIGURES, statement(data, "Attention in {layer}"))


_SECTION = Section(
    title="Attention entropy",
    definition="Entropy of each attention distribution over the tokens that it may see; mean over "
    "the ordinary tokens of all texts.",
    symbol="H = −Σⱼ aᵢⱼ log aᵢⱼ",
    null="Uniform attention over the visible tokens: mean log of their number, the grey line. "
    "A change counts beyond 1.96 standard errors of the paired difference over texts.",
    care="Sharp attention is no proxy for a solved task. Padding is never attended to here; "
    "special tokens can be.",
    source="Xu 2026, sec. 4.2, Fig. 2",
)
_UNIFORM = Band("uniform", "uniform", "uniform attention")
_FIGURES = [
    Curves(
        "layers",
        "Attention entropy, mean over heads",
        value="layer_entropy",
        bands=[_UNIFORM],
        caption="One line a layer; low is sharp.",
    ),
    Curves(
        "heads",
        "Attention entropy of every head",
        value="entropy",
        facet="head",
        bands=[_UNIFORM],
        caption="One panel a head, one line a layer.",
    ),
]
