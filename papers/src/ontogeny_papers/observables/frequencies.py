"""Which frequencies an embedding has over tokens that stand for numbers modulo n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from ontogeny.errors import ArgumentError
from ontogeny.figures import Heatmap, Section
from ontogeny.geometry import participation_ratio
from ontogeny.needs import Need
from ontogeny.observables import Observable, Reading, by_layer
from ontogeny.observables.matrices import Matrices
from ontogeny.quantities import Measured, Quantity

from ..geometry.fourier import row_frequencies

_FEWEST = 4


@dataclass(frozen=True)
class EmbeddingFrequencies(Observable):
    """Over how many frequencies the rows of an embedding spread, in the order of their ids.

    For tokens that stand for the numbers 0 to n − 1 modulo n. A model that adds them by angles
    holds few frequencies (Nanda et al. 2023).

    Parameters
    ----------
    blocks
        Glob over embeddings, or the short names ``"embed"`` and ``"unembed"``.
    tokens
        The numbers are the token ids from 0 on; how many. None: all rows.
    n_draws
        Random orders of the tokens, the null.
    random_state
        Seed of the orders.

    Examples
    --------
    >>> EmbeddingFrequencies(tokens=29).name
    'embedding-frequencies'
    """

    blocks: str | tuple[str, ...] = "embed"
    tokens: int | None = None
    n_draws: int = 20
    random_state: int = 0

    kind = "embedding-frequencies"
    minima = {"n_draws": 1, "tokens": _FEWEST}
    question = "Over how many frequencies do tokens that are numbers spread?"
    requires = "weights alone"
    price = "one Fourier transform at each step"
    quantities = (
        Quantity(
            "frequencies",
            "number of frequencies of the embedding",
            units="frequencies",
            symbol="(ΣP)² / ΣP²",
            rows="{layer} · frequencies",
            noise="exact",
            nulls={"permuted": "tokens in random order"},
            caption="Participation ratio of the variance over frequencies.",
        ),
    )
    variables = {"power": ("share of the variance at each frequency", "1")}
    section = Section(
        title="Frequencies of the embedding",
        definition="The rows of the numbers 0 to n − 1 as a periodic signal: the share of their "
        "variance at every frequency k = 1 to n/2, and over how many frequencies it spreads.",
        symbol="P_k = |Σ_a e_a exp(−2πi k a / n)|²",
        null="The same rows with the tokens in random order.",
        care="It means something only where token ids are numbers in their order. Few frequencies "
        "say how numbers are held, and not that they are added.",
        source="Nanda et al. 2023, sec. 4 and 5",
    )
    charts = (
        Heatmap(
            "power",
            "Share of the variance at every frequency",
            value="power",
            y="frequency",
            facet="layer",
        ),
    )

    def needs(self) -> Sequence[Need]:
        """Return the embedding."""
        return [Matrices(self.blocks)]

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the shares of the frequencies, how many there are, and the null."""
        data = by_layer(reading[self.needs()[0]], lambda _, E: self._measured(E))
        return data.assign_coords(
            frequency=1 + np.arange(data.sizes.get("frequency", 0))
        )

    def _measured(self, E: Tensor) -> dict[str, Any]:
        rows = E.detach().cpu().double().numpy()
        count = len(rows) if self.tokens is None else self.tokens
        if count > len(rows):
            raise ArgumentError(
                f"tokens is {count}, but the embedding has {len(rows)} rows."
            )
        rows = rows[:count]
        rng = np.random.default_rng(self.random_state)
        null = [
            _count(row_frequencies(rng.permutation(rows))) for _ in range(self.n_draws)
        ]
        power = row_frequencies(rows)
        frequencies = Measured(
            _count(power), nulls={"permuted": ("draw", np.array(null))}
        )
        return {"frequencies": frequencies, "power": ("frequency", power)}


def _count(power: np.ndarray) -> float:
    return float(participation_ratio(spectrum=np.sqrt(power)))
