"""Where the answer looks: attention of the last token, and when it settles (Xu 2026, sec. 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.figures import Section
from ontogeny.needs import Attention, Need
from ontogeny.observables.arguments import check_names, check_wholes
from ontogeny.observables.base import Observable
from ontogeny.observables.catalogued import PASS
from ontogeny.observables.variables import dataset
from ontogeny.quantities import Measured, Quantity
from ontogeny.summary.noise import mean_stderr
from ontogeny.trees import Nodes
from ontogeny.units import Units


@dataclass(frozen=True)
class ReadoutAttention(Observable):
    """Entropy and top-k mass of the attention of each text's last token, on each input set.

    Works for any model that `AttentionEntropy` reads.

    Parameters
    ----------
    on
        Input sets, one panel each; the study's first by default.
    top
        Numbers k of strongest keys whose share of the attention is taken.
    layers
        Glob over attention modules; by default all that return attention weights.

    Examples
    --------
    >>> ReadoutAttention(("m=1", "m=2")).name
    'readout-attention'
    """

    on: tuple[str, ...] = ()
    top: tuple[int, ...] = (1, 2, 4)
    layers: str | tuple[str, ...] = "*"

    kind = "readout-attention"
    question = "Where does the last token of each text look?"
    requires = "texts, attention maps"
    price = PASS
    quantities = (
        Quantity(
            "layer_entropy",
            "attention entropy at the last token, mean over heads",
            units="nats",
            rows="{layer} · {set} · read-out entropy",
            nulls={"uniform": "equal attention"},
            caption="One panel per set, one line per layer. Low: each token attends to few others.",
        ),
        Quantity(
            "head_entropy",
            "attention entropy at the last token, every head",
            units="nats",
            series="head",
            facet="layer",
            caption="One panel a layer; mean over the sets.",
        ),
        Quantity(
            "layer_mass",
            "attention on the strongest keys, mean over heads",
            units="share",
            series="k",
            facet="layer",
            caption="Share of the last token's attention on its k strongest keys; mean over the "
            "sets.",
        ),
    )
    variables = {
        "entropy": ("attention entropy at the last token", "nats"),
        "top_mass": ("attention on the strongest keys", "share"),
    }
    section = Section(
        title="Attention at the read-out",
        definition="Entropy of the last token's attention, and the share that its k strongest keys "
        "get; means over the texts of a set.",
        symbol="H = −Σⱼ aᵢⱼ log aᵢⱼ, i the last token",
        null="Equal attention to all visible tokens: the grey line. A change counts beyond 1.96 "
        "standard errors over texts.",
        care="Sharp attention is no proxy for a solved task, and the sharpest can come before it.",
        source="Xu 2026, sec. 4.2, Fig. 2",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_names("on", self.on, minimum=0)
        check_wholes("top", self.top, fewest=1)

    def needs(self) -> Sequence[Need]:
        """Return the reduced maps of each input set."""
        return [
            Attention(self.layers, on, tokens="last", top=self.top)
            for on in self.on or (None,)
        ]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return means over texts: ``entropy(set, layer, head)``, ``top_mass(k, ...)``.

        Also ``layer_entropy(set, layer)``, the mean over heads, with its value on every text, and
        ``layer_entropy_uniform(set)``, the entropy of equal attention.
        """
        pieces = [
            _of_set(reading[need], Units(reading.units(need))).expand_dims(set=[name])
            for name, need in zip(self.on or ("inputs",), self.needs(), strict=True)
        ]
        return xr.concat(pieces, dim="set", data_vars="all", join="outer")

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add means over heads and sets."""
        return data.assign(
            layer_mass=data.top_mass.mean(("head", "set")),
            head_entropy=data.entropy.mean("set"),
        )


def _of_set(maps: xr.Dataset, units: Units) -> xr.Dataset:
    of_text = maps.entropy.mean("head").astype(float).transpose(..., "text")
    error = of_text.isel(text=0, drop=True).copy(
        data=mean_stderr(*units.means(of_text.values))
    )
    return dataset(
        {
            "entropy": maps.entropy.mean("text"),
            "top_mass": maps.top_mass.mean("text"),
            "layer_entropy": Measured(
                maps.entropy.mean("text").mean("head"),
                stderr=error if units.count > 1 else None,
                nulls={"uniform": maps.uniform.mean("text")},
            ),
        }
    )


def settling_step(steps: np.ndarray, values: np.ndarray, share: float = 0.9) -> float:
    """Return the first step at which `share` of the fall to the lowest value is done.

    Parameters
    ----------
    steps, values
        A series, (n,) each.
    share
        Between 0 and 1.

    Returns
    -------
    float
        NaN where the series does not fall at all.

    Examples
    --------
    >>> settling_step(np.arange(5), np.array([2.0, 1.0, 0.1, 0.0, 0.5]))
    2.0
    """
    values = np.asarray(values, dtype=float)
    drop = values[0] - np.nanmin(values)
    if not drop > 0:
        return np.nan
    return float(np.asarray(steps)[np.argmax(values[0] - values >= share * drop)])
