"""Jumps and cycles that two series have in common: what a shared schedule leaves in them."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from .trends import neighbour_residuals

JUMPS = 3
PERIODS = 24
SHORTEST = 3.5  # checkpoints; shorter cycles are noise
FREE = 0.2
"""Level at which jumps or cycles in common are believed: a shared schedule is easily missed."""


def structure_p(gains: np.ndarray) -> float:
    """Return the p-value of "their fluctuations have no order in common", of `structure_gains`.

    It is the least over kinds of structure, corrected for taking the least of four: each draw has a
    least p-value of its own, from its ranks among all, and this is the share of them as small.

    Examples
    --------
    >>> structure_p(np.vstack([np.ones(4), np.zeros((99, 4))]))
    0.01
    """
    least = (rankdata(-gains, method="max", axis=0) / len(gains)).min(axis=1)
    return float((least <= least[0]).mean())


def structure_gains(
    steps: np.ndarray,
    trend: np.ndarray,
    fluctuation: np.ndarray,
    permutations: np.ndarray,
) -> np.ndarray:
    """Return how much one cycle, and one to three jumps, explain in both of two series.

    These are (1 + draws, 4) products of the shares explained of both, by the best cycle (with its
    double frequency) and by one, two and three jumps; first of the series, then of draws. A draw puts
    the fluctuations of both into the same random order: noise that they share stays shared, and
    what a schedule makes of the order of checkpoints is gone.

    Parameters
    ----------
    steps
        (T,).
    trend, fluctuation
        (2, T), of `detrend`.
    permutations
        (draws, T), each an order of 0 to T − 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> orders = np.argsort(rng.random((99, 40)), axis=1)
    >>> cycle = np.sin(np.arange(40)) + 0.2 * rng.normal(size=(2, 40))
    >>> structure_p(structure_gains(np.arange(40.0), np.zeros((2, 40)), cycle, orders))
    0.03
    """
    series = np.concatenate(
        [fluctuation[None], fluctuation[:, permutations].transpose(1, 0, 2)]
    )
    cycles = _cycle_gains(_unit(series))
    return np.column_stack([cycles, *_jump_gains(steps, trend + series)])


def _cycle_gains(fluctuation: np.ndarray) -> np.ndarray:
    number = np.arange(fluctuation.shape[-1])
    best = np.zeros(len(fluctuation))
    for period in np.geomspace(SHORTEST, len(number) / 2, PERIODS):
        phase = 2 * np.pi * number / period
        waves = [wave(k * phase) for k in (1, 2) for wave in (np.cos, np.sin)]
        basis, _ = np.linalg.qr(np.stack(waves, axis=1))
        best = np.maximum(best, ((fluctuation @ basis) ** 2).sum(axis=-1).prod(axis=-1))
    return best


def _jump_gains(steps: np.ndarray, series: np.ndarray) -> list[np.ndarray]:
    """Return the gains (draws,) of one, two and three jumps at the same places in both."""
    matrix = neighbour_residuals(steps)
    whole = residual = _unit(series @ matrix.T)
    jumps = matrix @ np.tri(len(steps))[:, 1:]
    unit = jumps / np.linalg.norm(jumps, axis=0)
    places = np.zeros((len(residual), 0), dtype=np.int64)
    gains = []
    for _ in range(JUMPS):
        best = ((residual @ unit) ** 2).prod(axis=1).argmax(axis=-1)
        places = np.concatenate([places, best[:, None]], axis=1)
        basis, _ = np.linalg.qr(jumps.T[places].transpose(0, 2, 1))
        residual = whole - (whole @ basis) @ basis.transpose(0, 2, 1)
        gains.append((1 - (residual**2).sum(axis=-1)).prod(axis=-1))
    return gains


def _unit(series: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(series, axis=-1, keepdims=True)
    return series / np.where(norms > 0, norms, 1.0)
