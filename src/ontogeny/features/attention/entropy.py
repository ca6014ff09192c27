"""How spread out attention is, per layer and head, at every token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Section
from ...inputs import ShownTexts
from ...needs import Attention, InputSet, Need
from ...observables import Observable, PresetEntry, Run, dataset
from ...observables.catalogued import PASS
from ...observables.pieces import (
    PIECES,
    SHOWN,
    pieces_variable,
    shown_variables,
    with_pieces,
)
from ...quantities import Measured, Quantity
from ...trees import Nodes


@dataclass(frozen=True)
class AttentionEntropy(Observable):
    """Entropy of the attention distribution in nats, mean over ordinary query tokens.

    Parameters
    ----------
    layers
        Glob over attention modules; by default all that return attention weights.
    on
        Input set; the first by default.
    shown_texts
        Of how many texts the entropy of every token is kept, mean over heads, for the example text
        of the page: of the texts that `TokenLosses` shows by default, the same number of them.

    Examples
    --------
    >>> AttentionEntropy().name
    'attention-entropy'
    """

    layers: str | tuple[str, ...] = "*"
    on: str | None = None
    shown_texts: int = 0

    kind = "attention-entropy"
    minima = {"shown_texts": 0}
    question = "How focused is each attention head?"
    requires = "texts, attention maps"
    price = PASS
    obstacles = ("no_maps",)
    presets = (
        PresetEntry(
            ("standard", "circuits", "fine-tuning", "everything", "one-model"), {}, 160
        ),
    )
    state_variables = (*SHOWN, PIECES)
    variables = {
        **SHOWN,
        "shown_entropy": (
            "attention entropy of each token shown, mean over heads",
            "nats",
        ),
        "shown_entropy_uniform": (
            "entropy of equal attention at each token shown",
            "nats",
        ),
        "piece_text": ("how a token is written", ""),
    }
    quantities = (
        Quantity(
            "layer_entropy",
            "mean attention entropy",
            units="nats",
            rows="{layer} · attention entropy",
            nulls={"uniform": "uniform attention"},
            caption="Low: each token attends to few others.",
        ),
        Quantity(
            "entropy",
            "attention entropy",
            units="nats",
            heading="attention entropy of every head",
            nulls={"uniform": "uniform attention"},
        ),
    )
    section = Section(
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
        """Return the reduced attention maps, and the texts where tokens are shown."""
        maps = Attention(self.layers, self.on, shown=self.shown_texts)
        return [maps, InputSet(self.on)] if self.shown_texts else [maps]

    @property
    def prepares(self) -> bool:
        """Whether tokens are shown, which are chosen once."""
        return self.shown_texts > 0

    def prepare(self, run: Run) -> xr.Dataset:
        """Return which tokens are shown."""
        texts = InputSet(self.on)
        sample = ShownTexts.of(run.reading(run.reference_step)[texts], self.shown_texts)
        return xr.Dataset(
            shown_variables(sample) | {PIECES: pieces_variable(run.pieces(texts))}
        )

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the entropy per layer and head, their mean, and that of uniform attention."""
        maps = reading[self.needs()[0]]
        weights = maps.tokens.astype(np.float64)
        share = weights / weights.sum()
        entropy = (maps.entropy.astype(np.float64) * share).sum("text")
        uniform = {"uniform": (maps.uniform.astype(np.float64) * share).sum("text")}
        # A text without ordinary tokens has no entropy and no weight.
        of_text = (
            maps.entropy.mean("head").astype(np.float64).where(maps.tokens > 0, 0.0)
        )
        of_text = of_text.transpose(..., "text")
        mean = Measured.over_texts(
            entropy.mean("head"),
            of_text.values,
            maps.tokens.values,
            reading.units(self.needs()[0]),
            [str(dim) for dim in of_text.dims],
            uniform,
        )
        data = dataset(
            {"layer_entropy": mean, "entropy": Measured(entropy, nulls=uniform)}
        )
        return data.assign(
            {name: maps[name] for name in maps if name in self.variables}
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with how the tokens shown are written.

        What equal attention would give hardly depends on the step: it is kept once.
        """
        if "shown_entropy_uniform" in data:
            data = data.assign(
                shown_entropy_uniform=data.shown_entropy_uniform.max("step")
            )
        return with_pieces(data, ["shown_token_id"]) if PIECES in data else data
