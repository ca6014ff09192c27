"""Where the answer looks: attention of the last token, and when it settles (row C7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Section, attach
from ..needs import Attention, Need
from .arguments import check_names, check_wholes
from .attributes import Names
from .base import Observable
from .rows import development_rows, statement

__all__ = ["ReadoutAttention", "settling_step"]


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
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> ReadoutAttention(("m=1", "m=2")).name
    'readout-attention'
    """

    on: tuple[str, ...] = ()
    top: tuple[int, ...] = (1, 2, 4)
    layers: str | tuple[str, ...] = "*"
    label: str | None = None

    kind: ClassVar[str] = "readout-attention"
    variables: ClassVar[Names] = {
        **dict.fromkeys(
            ("entropy", "uniform", "layer_entropy", "head_entropy"),
            ("attention entropy at the last token", "nats"),
        ),
        **dict.fromkeys(("top_mass", "layer_mass"), ("attention on the strongest keys", "share")),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names("on", self.on, minimum=0)
        check_wholes("top", self.top, fewest=1)
        self.needs()

    def needs(self) -> Sequence[Need]:
        """Return the reduced maps of each input set."""
        return [
            Attention(self.layers, on, tokens="last", top=self.top) for on in self.on or (None,)
        ]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return means over texts: ``entropy(set, layer, head)``, ``top_mass(k, ...)``.

        Also ``uniform(set)``, the entropy of equal attention, and ``layer_entropy_stderr``: the
        standard error of each layer's mean over heads.
        """
        maps = [reading[need] for need in self.needs()]
        pieces = []
        for name, data in zip(self.on or ("inputs",), maps, strict=True):
            values = data.entropy.mean("head").astype(np.float64)
            pieces.append(
                xr.Dataset(
                    {
                        "entropy": data.entropy.mean("text"),
                        "top_mass": data.top_mass.mean("text"),
                        "uniform": data.uniform.mean("text"),
                        "layer_entropy_stderr": values.std("text", ddof=1)
                        / np.sqrt(max(data.sizes["text"], 2)),
                    }
                ).expand_dims(set=[name])
            )
        return xr.concat(pieces, dim="set", data_vars="all", join="outer")

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add means over heads, chart rows and figures."""
        layers = [str(layer) for layer in data.layer.values]
        names = [str(name) for name in data.set.values]
        mean = data.entropy.mean("head").transpose("set", "layer", "step")
        error = data.layer_entropy_stderr.transpose("set", "layer", "step").values
        floor = 1.96 * np.sqrt(error**2 + error[..., :1] ** 2)
        pairs = [(name, layer) for name in names for layer in layers]
        data = data.assign(
            layer_entropy=mean,
            layer_mass=data.top_mass.mean(("head", "set")),
            head_entropy=data.entropy.mean("set"),
            **development_rows(
                [f"{layer} · {name} · read-out entropy" for name, layer in pairs],
                [layer for _, layer in pairs],
                data.step.values,
                mean.values.reshape(len(pairs), -1),
                floor=np.nan_to_num(floor.reshape(len(pairs), -1), nan=np.finfo(float).max),
            ),
        )
        return attach(data, _SECTION, _FIGURES, statement(data, "Read-out attention in {layer}"))


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
        return float("nan")
    return float(np.asarray(steps)[np.argmax(values[0] - values >= share * drop)])


_SECTION = Section(
    title="Attention at the read-out",
    definition="Entropy of the last token's attention, and the share that its k strongest keys "
    "get; means over the texts of a set.",
    symbol="H = −Σⱼ aᵢⱼ log aᵢⱼ, i the last token",
    null="Equal attention to all visible tokens: the grey line. A change counts beyond 1.96 "
    "standard errors over texts.",
    care="Sharp attention is no proxy for a solved task, and the sharpest can come before it.",
    source="Xu 2026, sec. 4.2, Fig. 2",
)
_UNIFORM = Band("uniform", "uniform", "equal attention")
_FIGURES = [
    Curves(
        "entropy",
        "Attention entropy at the last token, mean over heads",
        value="layer_entropy",
        facet="set",
        bands=[_UNIFORM],
        caption="One panel a set, one line a layer; low is sharp.",
    ),
    Curves(
        "heads",
        "Attention entropy at the last token, every head",
        value="head_entropy",
        series="head",
        facet="layer",
        caption="One panel a layer; mean over the sets.",
    ),
    Curves(
        "mass",
        "Attention on the strongest keys, mean over heads",
        value="layer_mass",
        series="k",
        facet="layer",
        caption="Share of the last token's attention on its k strongest keys; mean over the sets.",
    ),
]
