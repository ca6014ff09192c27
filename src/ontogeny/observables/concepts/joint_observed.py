"""What joint concepts do at one checkpoint, as it is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...concepts.joint.intervals import found_again
from ...concepts.joint.presence import Decoder
from ...concepts.joint.snapshots import deviation, standardised
from ...quantities import Measured


def standard(A: torch.Tensor) -> tuple[np.ndarray, float]:
    """Return activations (n, m) centred and divided by their standard deviation, and that."""
    values = to_numpy(A)
    rows = np.arange(len(values))
    return standardised(values, rows, "step", 1.0), deviation(values, rows)


def observed(X: np.ndarray, decoder: Decoder, other: Decoder, limit: float) -> dict[str, Any]:
    """Return strength and readability of the latents at a standardised checkpoint `X` (n, m).

    `other` has the codes of another seed; a latent is readable from `limit` on.
    """
    grams = decoder.grams(X)
    halves, seeds = (each.readable(X, grams) for each in (decoder, other))
    there = decoder.presence(X, grams, halves)
    counts = [float((halves >= limit)[i].sum()) for i in (0, 1)]
    counts.append(float((seeds.mean(axis=0) >= limit).sum()))
    labels = {"refit": ["half 1", "half 2", "seed 1"]}
    return {
        "concepts_there": Measured(
            float((there.readable[0] >= limit).sum()),
            replicates=xr.DataArray(np.array(counts), dims="refit", coords=labels),
        ),
        "explained": float(there.explained[0]),
        "strength": ("concept", there.strength[0]),
        "readability": ("concept", there.readable[0]),
        "whitened": (("concept", "other"), there.whitened[0]),
        "influence": (("block", "concept"), there.influence[0]),
        "spread": ("concept", there.spread[0]),
        "found_again": ("concept", found_again(decoder.codes, other.codes)[0]),
    }
