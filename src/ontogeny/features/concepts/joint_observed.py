"""What joint concepts do at one checkpoint, and whether their codes still know enough of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...concepts.joint.readout import CheckpointReadout
from ...concepts.joint.runs import STALE
from ...quantities import Measured


def observed(there: CheckpointReadout, again: np.ndarray, limit: float) -> dict[str, Any]:
    """Return strength and readability of the latents at a checkpoint.

    `again` are the codes (n, r) of another seed; a latent is readable from `limit` on.
    """
    presence, halves = there.presence, there.readable
    counts = [float((halves >= limit)[i].sum()) for i in (0, 1)]
    counts.append(float((there.moments.readable(again).mean(axis=0) >= limit).sum()))
    labels = {"refit": ["half 1", "half 2", "seed 1"]}
    return {
        "concepts_there": Measured(
            float((presence.readable[0] >= limit).sum()),
            replicates=xr.DataArray(np.array(counts), dims="refit", coords=labels),
        ),
        "explained": float(presence.explained[0]),
        "strength": ("concept", presence.strength[0]),
        "readability": ("concept", presence.readable[0]),
        "whitened": (("concept", "other"), presence.whitened[0]),
        "influence": (("block", "concept"), presence.influence[0]),
        "spread": ("concept", presence.spread[0]),
    }


def stale_sentences(data: xr.Dataset, fitted: Sequence[int]) -> list[str]:
    """Return one sentence for each layer whose codes know less of new checkpoints than of old ones.

    Parameters
    ----------
    data
        Cells along ``step``, with ``explained(step, layer)``.
    fitted
        Steps that the codes were fitted on.

    Examples
    --------
    >>> explained = xr.DataArray(
    ...     [[0.8], [0.7], [0.5]], {"step": [0, 10, 20], "layer": ["h.0"]}, ("step", "layer")
    ... )
    >>> stale_sentences(explained.to_dataset(name="explained"), (0, 10))[0].partition(":")[0]
    'The codes of h.0 have gone stale'
    """
    if "explained" not in data or not len(fitted):
        return []
    explained = data.explained.transpose("step", "layer")
    old = explained.sel(step=explained.step.isin(list(fitted)))
    new = explained.sel(step=explained.step > max(fitted))
    if not old.sizes["step"] or not new.notnull().any():
        return []
    sentences = []
    for layer in data.layer.values:
        least, later = float(old.sel(layer=layer).min()), new.sel(layer=layer).dropna("step")
        if later.size and float(later.min()) < STALE * least:
            worst = int(later.step[later.values.argmin()])
            sentences.append(
                f"The codes of {layer} have gone stale: they explain {float(later.min()):.2f} of "
                f"the variance at step {worst:,}, and at least {least:.2f} at the steps that they "
                "were fitted on. Add later steps to fit_steps."
            )
    return sentences
