"""Tokens with a direction of their own: one table, as no concept is made of them."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ...observables.pieces import object_array

ORDER = ("layer", "step", "listed")
ROWS = "token_rank"  # each layer has an order of its own, which is not that of `frequent_id`


def with_token_table(data: xr.Dataset) -> xr.Dataset:
    """Return stacked cells with a row for each frequent token, the largest last share first."""
    if "token_part" not in data or "piece_text" not in data:
        return data
    parts = data.token_part.transpose(*ORDER).values
    ids = data.frequent_id.values.astype(int)
    known = np.isfinite(parts).all(axis=2)
    first, last = (np.full((len(parts), len(ids)), np.nan) for _ in range(2))
    half = np.full_like(first, np.nan)
    text = object_array([""] * first.size).reshape(first.shape)
    pieces = dict(
        zip(data["piece"].values.tolist(), data.piece_text.values.tolist(), strict=True)
    )
    for i, there in enumerate(known):
        curve = parts[i, there]
        if not len(curve):
            continue
        order = np.argsort(-curve[-1], kind="stable")
        curve = curve[:, order]
        first[i] = curve[0]
        last[i] = curve[-1]
        half[i] = _stays(curve, data.step.values[there])
        text[i] = [str(pieces.get(token, token)) for token in ids[order].tolist()]
    dims = ("layer", ROWS)
    return data.assign_coords({ROWS: np.arange(len(ids))}).assign(
        token_text=(dims, text),
        token_first=(dims, first),
        token_last=(dims, last),
        token_half=(dims, half),
    )


def _stays(curve: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the first step from which on curves (step, token) have half of their last value."""
    below = curve < curve[-1] / 2
    start = len(curve) - below[::-1].argmax(axis=0)
    return np.where(
        below.any(axis=0), steps[np.minimum(start, len(steps) - 1)], steps[0]
    )
