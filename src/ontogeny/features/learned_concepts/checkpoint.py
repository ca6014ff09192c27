"""What one checkpoint says of components: how readable, how strong, and where they point."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...concepts.beyond_token import centred
from ...scratch import let_go_unchanged
from .parts import Predictor, scale_of, scaled

FEW = 64  # codes that are in memory at a time


def presence(read: Predictor, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return readability and strength (F, r) of codes (F, n, r) of F fits.

    The read-out of what a half of the texts has found is fitted on that half, and judged on the
    other one. The squared strength is the share of the variance of `read.X` that a component writes
    alone, less what noise writes.
    """
    size = max(float(np.einsum("nm,nm->", read.X, read.X, dtype=np.float64)), 1e-30)
    readable = []
    strength = []
    for stored in codes:
        parts = [_of_some(read, some, size) for some in few_at_a_time(stored)]
        let_go_unchanged(stored)
        readable.append(np.concatenate([part[0] for part in parts], axis=1))
        strength.append(np.concatenate([part[1] for part in parts]))
    halves = np.mean(readable, axis=1)
    for fit_number, other in ((1, 1), (2, 0)):
        halves[fit_number] = readable[fit_number][other]
    return halves, np.stack(strength)


def _of_some(
    read: Predictor, stored: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return readability (2, s) and strength (s,) of codes (n, s) in half precision."""
    n = len(read.X)
    codes = np.asarray(stored, dtype=np.float32)
    variance = _variance(codes)
    written = _written(read.X, codes, variance)
    share = np.einsum("rm,rm->r", written, written) * variance * n / size
    return read.readable(codes), np.sqrt(np.maximum(share - 1 / n, 0))


def decoders(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return (r, m) what one unit of each code (n, r) writes in rows X (n, m); 0 of no code."""
    return _written(X, codes, _variance(codes))


def _written(X: np.ndarray, codes: np.ndarray, variance: np.ndarray) -> np.ndarray:
    centred = codes - codes.mean(axis=0)
    least = np.maximum(variance, 1e-12)
    return np.asarray((centred.T @ X) / (len(X) * least[:, None]), dtype=np.float64)


def _variance(codes: np.ndarray) -> np.ndarray:
    parts = [part.var(axis=0, dtype=np.float64) for part in few_at_a_time(codes)]
    return np.concatenate(parts)


def few_at_a_time(codes: np.ndarray) -> list[np.ndarray]:
    """Return codes (n, r) by a few columns: what is made of all takes several times their memory."""
    return np.array_split(codes, max(codes.shape[1] // FEW, 1), axis=1)


def directions(
    read: Predictor, codes: np.ndarray, left: np.ndarray, whole: np.ndarray
) -> dict[str, Any]:
    """Return what lets others patch and steer by codes (n, r): decoders, read-outs, mean and scale.

    ``code ≈ ((a - mean - token part) / scale) @ readout``, and a unit of it adds ``decoder`` to an
    activation a. Others have no token part: how far the read-out of the `whole` activations (n, m)
    is the code stands beside.
    """
    scale = scale_of(left)
    rows = centred(whole)
    rows /= scale.astype(np.float32)
    readouts = []
    agreements = []
    written = []
    for stored in few_at_a_time(codes):
        some = np.asarray(stored, dtype=np.float32)
        weights = read.weights(some)
        raw = scaled(rows @ weights)
        readouts.append(weights.T)
        agreements.append(np.einsum("nr,nr->r", raw, scaled(some)) / max(len(some), 1))
        written.append(decoders(left, some))
    return {
        "decoder": (("concept", "feature"), np.concatenate(written).astype(np.float32)),
        "readout": (("concept", "feature"), np.concatenate(readouts)),
        "raw_agreement": ("concept", np.concatenate(agreements).astype(np.float32)),
        "mean": ("feature", whole.mean(axis=0).astype(np.float32)),
        "scale": ("feature", scale.astype(np.float32)),
    }
