"""Shapes that a course may have: what stands above the line of the ratio in `shape_ratio`."""

from __future__ import annotations

import numpy as np

ALONE = 0.85  # share of a shape that one checkpoint may hold: heavy tails give such outliers
# Checkpoints from which on shapes with several free sizes are fitted.
FEWEST_COMPOUND = 10
NARROWEST = 0.5  # width in checkpoints of curves
FADING = 5  # how many speeds at which an overshoot comes back
ROUNDING = 1e-10


def shapes(count: int) -> list[np.ndarray]:
    """Return shapes over so many checkpoints (some, sizes, T), by their number of free sizes.

    Examples
    --------
    >>> [group.shape[1:] for group in shapes(12)]
    [(1, 12), (2, 12), (3, 12)]
    """
    if count < FEWEST_COMPOUND:
        return [_single(count)]
    return [_single(count), _overshoots(count), _cubic(count)]


def curves(count: int, narrowest: float) -> list[np.ndarray]:
    """Return lines and roots, then S-curves and exponentials from a width on; each (some, T)."""
    t = np.arange(count, dtype=np.float64)
    found = [np.array([t, np.sqrt(t), np.sqrt(t[::-1])])]
    width = narrowest
    while width < count / 3:
        away = (t - np.arange(0, count - 1, width)[:, None]) / width
        found += [0.5 * (1 + np.tanh(away / 2)), np.exp([-t / width, -t[::-1] / width])]
        width *= np.sqrt(2)
    return found


def jumps(count: int) -> np.ndarray:
    """Return a jump before each checkpoint but the first (T - 1, T)."""
    t = np.arange(count, dtype=np.float64)
    return (t >= t[1:, None]).astype(np.float64)


def _single(count: int) -> np.ndarray:
    """Return shapes with one free size that do not lie at one checkpoint alone."""
    moved = np.concatenate([*curves(count, NARROWEST), jumps(count)])
    moved -= moved.mean(axis=1, keepdims=True)
    share = np.max(moved**2, axis=1) / np.maximum(np.sum(moved**2, axis=1), ROUNDING)
    return moved[(share < ALONE) & (np.ptp(moved, axis=1) > ROUNDING)][:, None]


def _overshoots(count: int) -> np.ndarray:
    """Return rises beside what comes back of them, or goes on, later."""
    t = np.arange(count, dtype=np.float64)
    apart = max(1, count // 16)
    away = t - np.arange(0.5, count - 3, apart)[:, None]
    rises = np.concatenate([away > 0, 0.5 * (1 + np.tanh(away / apart))])
    since = np.tile(np.maximum(away, 0), (2, 1))
    backs = [
        rises * np.exp(-since / time) for time in np.geomspace(1, count / 2, FADING)
    ]
    return np.stack([np.tile(rises, (FADING, 1)), np.concatenate(backs)], axis=1)


def _cubic(count: int) -> np.ndarray:
    """Return what polynomials of degree 3 consist of."""
    return np.polynomial.legendre.legvander(np.linspace(-1, 1, count), 3)[:, 1:].T[None]
