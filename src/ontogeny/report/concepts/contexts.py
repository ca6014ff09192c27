"""Arrays of the atlas as the page holds them: small whole numbers, contexts at some checkpoints."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...words.catalogue.learned_concepts import BANDS
from .arrays import ConceptArrays
from .lives import Concept
from .tokens import Pieces

FULL = 250  # of a byte: the peak
MISSING = 255  # a step that was not measured
LEVELS = 15  # of a code, of which two are held in a byte: the largest


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


def shares(values: np.ndarray) -> np.ndarray:
    """Return shares from 0 to 1 as bytes, what is not finite as missing."""
    is_finite = np.isfinite(values)
    coded = np.round(np.clip(np.where(is_finite, values, 0.0), 0, 1) * FULL)
    return np.where(is_finite, coded, MISSING).astype(np.uint8)


def packed_contexts(
    arrays: ConceptArrays,
    picks: Sequence[Concept],
    keys: np.ndarray | None,
    pieces: Pieces,
) -> dict[str, Any] | None:
    """Return contexts over (concept, keyframe, example, place), or those of a single code.

    Without `keys` (concept, keyframe), places of steps, they are those of one step.
    """
    dims = {"layer", "concept", "example", "place"}
    for start in ("", "shared_"):
        names = (f"{start}context_id", f"{start}context_code")
        bands = arrays.data["band"].values.tolist() if "band" in arrays else []
        if any(arrays.dims(name) - {"band"} != dims for name in names):
            continue
        follow = keys is not None and all(
            "step" in arrays.data[name].dims for name in names
        )
        tokens, codes = (
            _gathered(arrays, name, picks, keys if follow else None) for name in names
        )
        tokens = np.nan_to_num(tokens.astype(float), nan=-1).astype(int)
        codes = np.clip(np.nan_to_num(codes.astype(float)), 0, 1)
        if bands:  # one after the other
            tokens, codes = (
                x.reshape(*x.shape[:2], -1, x.shape[-1]) for x in (tokens, codes)
            )
        # The middle token is the strongest: a context without it was not kept.
        return {
            "follow": follow,
            "shared": bool(start),
            "middle": middle(arrays, tokens.shape[-1]),
            "bands": [BANDS.get(band, band) for band in bands],
            **_lines(pieces.all_places(tokens) + 1),
            "codes": packed(_halves(np.round(codes * LEVELS).astype(np.uint8))),
        }
    return None


def middle(arrays: ConceptArrays, places: int) -> int:
    """Return which place of a context is that of the concept."""
    if "place" not in arrays:
        return places // 2
    return int(np.flatnonzero(arrays.data["place"].values == 0)[0])


def _gathered(
    arrays: ConceptArrays,
    name: str,
    concepts: Sequence[Concept],
    keys: np.ndarray | None,
) -> np.ndarray:
    """Return a variable of the concepts, at their keyframes; steps are read as they are stored."""
    layer, number = (np.array([one.place[i] for one in concepts]) for i in (0, 1))
    if keys is None:
        return arrays.at_step(name)[layer, number][:, None]
    whole = arrays.data.variables[name]
    chunks = dict(zip(whole.dims, whole.encoding.get("chunks") or (), strict=False))
    variable = whole.transpose("step", "layer", "concept", ...)
    gathered = np.zeros((*keys.shape, *variable.shape[3:]), dtype=variable.dtype)
    block = chunks.get("step", len(variable))
    for start in range(0, len(variable), block):
        concept, key = np.nonzero((keys >= start) & (keys < start + block))
        if len(concept):
            here = variable[start : start + block].values
            step = keys[concept, key] - start
            gathered[concept, key] = here[step, layer[concept], number[concept]]
    return gathered


def _lines(tokens: np.ndarray) -> dict[str, Any]:
    """Return the contexts that differ (line, place), and which of them stands where.

    A concept that has settled has the same contexts at one checkpoint after the other.
    """
    flat = tokens.reshape(-1, tokens.shape[-1])
    lines, which = np.unique(flat, axis=0, return_inverse=True)
    return {
        "lines": packed(lines.astype(np.uint16)),
        "line": packed(which.reshape(tokens.shape[:-1]).astype(np.uint16)),
    }


def _halves(levels: np.ndarray) -> np.ndarray:
    """Return whole numbers below 16, two in each byte along the last axis, the first one high."""
    if levels.shape[-1] % 2:
        levels = np.concatenate([levels, np.zeros_like(levels[..., :1])], axis=-1)
    halves: np.ndarray = levels[..., ::2] << 4 | levels[..., 1::2]
    return halves
