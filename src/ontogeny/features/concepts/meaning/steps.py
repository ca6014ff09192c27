"""How much the words of concepts belong together at one checkpoint, as cells hold it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from ....quantities import Measured, Quantity
from ....words.names import Names
from ..describe.rows import turned
from .coherence import N_DRAWS
from .contexts import WordContexts

MEANING = Quantity(
    "meaning",
    "coherence of the {word}s of a concept",
    "standard deviations",
    rows="{layer} · meaning",
    subject="How much the {word}s of a concept of {layer} belong together",
    unit="concepts",
    nulls={"untrained": "untrained model"},
    optional=True,
    caption="Mean over the latents that both halves of the texts find. The words on which a "
    "readout of this checkpoint puts most of the code: do they stand beside the same words, in "
    "texts that they were not chosen on, more than others that are as frequent?",
)
WORDS: Names = {
    "coherence": (
        "how much the {word}s of a concept stand in the same contexts",
        "deviations",
    ),
    "coherence_limit": (
        "95th percentile of the coherence in the untrained model",
        "deviations",
    ),
    "coherence_untrained": (
        "coherence of the latents of the untrained model",
        "deviations",
    ),
    "coherence_at_step": (
        "coherence of the words of a readout of the checkpoint",
        "deviations",
    ),
    "class_name": ("name of the class of words; empty where there is none", ""),
    "class_p": (
        "p-value of the coherence against words as frequent, corrected (Holm)",
        "1",
    ),
    "name_kind": ("whether a name is of a class or of tokens", ""),
    "name_beside": ("what tells a concept from others of the same name", ""),
    "word_source": ("texts that the vectors of words are from", ""),
}


def alike_at_step(
    state: xr.Dataset | None, random_state: int
) -> Callable[[np.ndarray, xr.Dataset], dict[str, Any]]:
    """Return what gives the coherences of a layer from codes (n, r) and the layer of the state."""
    if state is None or "word_vector" not in state:
        return lambda codes, layer: {}
    words = WordContexts.stored(state, random_state)

    def alike(codes: np.ndarray, layer: xr.Dataset) -> dict[str, Any]:
        judged = words.judged(turned(codes), N_DRAWS)
        replicating = layer["replicates"].values > 0
        variables: dict[str, Any] = {
            "coherence_at_step": ("concept", judged.z.astype(np.float32))
        }
        if not replicating.any():
            return variables
        untrained = np.zeros(0)
        if "coherence_untrained" in layer:
            untrained = layer["coherence_untrained"].values
            untrained = untrained[np.isfinite(untrained)]  # NaN pads shorter layers
        return variables | {
            "meaning": Measured(
                judged.z[replicating].mean(),
                of_text=("text", judged.z),  # paired over steps: the same concepts
                weights=("text", replicating.astype(float)),
                nulls={"untrained": untrained.mean()} if len(untrained) else {},
            )
        }

    return alike
