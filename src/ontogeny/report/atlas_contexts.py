"""Arrays of the atlas as the page holds them: small whole numbers, contexts at some checkpoints."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from .life_lines import Concept
from .pieces import Pieces

FULL, MISSING = 250, 255  # of a byte: the peak, and a step that was not measured


def packed(values: np.ndarray) -> dict[str, Any]:
    """Return small whole numbers as base64 with their shape."""
    kind = {1: "u1", 2: "u2"}[values.dtype.itemsize]
    raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {
        "shape": list(values.shape),
        "dims": [f"d{i}" for i in range(values.ndim)],
        "dtype": kind,
        "bdata": base64.b64encode(raw).decode("ascii"),
    }


def packed_contexts(
    data: xr.Dataset, shown: Sequence[Concept], keys: np.ndarray, pieces: Pieces
) -> dict[str, Any] | None:
    """Return contexts over (concept, keyframe, example, place), or those of the shared code."""
    for start, over_steps in (("", True), ("shared_", False)):
        names = (f"{start}context_id", f"{start}context_code")
        if any(name not in data for name in names):
            continue
        dims = ("layer", "concept", "example", "place")
        if set(data[names[0]].dims) != {*dims, *(["step"] if over_steps else [])}:
            continue
        order = (*dims[:2], "step", *dims[2:]) if over_steps else dims
        tokens, codes = (
            np.stack([
                _of_one(data[name].transpose(*order).values[each.place], own, over_steps)
                for each, own in zip(shown, keys, strict=True)
            ])
            for name in names
        )  # fmt: skip
        tokens = np.nan_to_num(tokens.astype(float), nan=-1).astype(int)
        codes = np.clip(np.nan_to_num(codes.astype(float)), 0, 1)
        # The middle token is the strongest: a context without it was not kept.
        return {
            "follow": over_steps,
            "middle": tokens.shape[-1] // 2,
            "tokens": packed((pieces.all_places(tokens) + 1).astype(np.uint16)),
            "codes": packed(np.round(codes * FULL).astype(np.uint8)),
        }
    return None


def _of_one(values: np.ndarray, keys: np.ndarray, over_steps: bool) -> np.ndarray:
    return values[keys] if over_steps else values[None]
