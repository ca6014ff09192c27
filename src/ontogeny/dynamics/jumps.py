"""Jumps of a trend between two checkpoints, and how much of the residuals they explain."""

from __future__ import annotations

import numpy as np

from .noise_levels import Panel
from .trends import NEIGHBOURS

FEWEST, MOST = 1, 4
HALF = NEIGHBOURS // 2


def jump_gains(panel: Panel, residuals: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return how much the second to fourth jump of each trend save beyond the first, (draws, 3).

    Jumps are chosen one after the other, by orthogonal matching pursuit (Y. Pati, R. Rezaiifar,
    P. Krishnaprasad, Asilomar 1993): the place whose jump fits the residuals best, then all sizes
    anew. What they save is the fall of ``n log(mean |residual|)``, summed over series.

    Parameters
    ----------
    panel
        The panel of the series.
    residuals
        (draws, T, K) of the `used` series of the panel.
    used
        (K,) their places in the panel.

    Examples
    --------
    >>> values = np.add.outer(np.arange(20) >= 6, [0.0]) + (np.arange(20) >= 13)[:, None]
    >>> panel = Panel.of(np.arange(20.0), values)
    >>> noise = np.random.default_rng(0).normal(size=(20, 1))
    >>> gains = jump_gains(panel, panel.residuals(np.stack([values + noise / 99, noise])), np.r_[0])
    >>> gains.shape, bool(gains[0, 0] > 3 * gains[1, 0])
    ((2, 3), True)
    """
    total = np.zeros((len(residuals), MOST - FEWEST))
    for columns, rows, matrix in panel.groups:
        known = residuals[:, rows[HALF:-HALF]][:, :, np.searchsorted(used, columns)]
        each = np.moveaxis(known, 2, 1).reshape(-1, matrix.shape[0])  # (draws * columns, n)
        jumps = matrix @ np.tri(len(rows))[:, 1:]  # column j: a jump before value j + 1
        sizes = [np.abs(left).mean(axis=1) for left in _without_jumps(each, jumps)]
        saved = np.log(np.maximum(sizes, np.finfo(float).tiny)) * matrix.shape[0]
        gains = (saved[FEWEST] - saved[FEWEST + 1 :]).T
        total += gains.reshape(len(residuals), len(columns), -1).sum(axis=1)
    return total


def _without_jumps(residuals: np.ndarray, jumps: np.ndarray) -> list[np.ndarray]:
    """Return residuals (draws, n) without 0, 1, ..., `MOST` jumps, whose patterns are (n, C)."""
    norm, gram, along = np.linalg.norm(jumps, axis=0), jumps.T @ jumps, residuals @ jumps
    chosen = np.zeros((len(residuals), 0), dtype=np.int64)
    left, unexplained = [residuals], along
    for _ in range(MOST):
        fit = np.abs(unexplained) / norm
        np.put_along_axis(fit, chosen, -1.0, axis=1)  # each place once
        chosen = np.concatenate([chosen, fit.argmax(axis=1)[:, None]], axis=1)
        inner = gram[chosen[:, :, None], chosen[:, None, :]]
        sizes = np.linalg.solve(inner, np.take_along_axis(along, chosen, axis=1)[..., None])
        unexplained = along - np.einsum("dk,dkc->dc", sizes[..., 0], gram[chosen])
        left.append(residuals - np.einsum("dk,dkn->dn", sizes[..., 0], jumps.T[chosen]))
    return left
