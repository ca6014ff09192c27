"""Jumps of a trend, over one to three checkpoints, and how much of the residuals they explain."""

from __future__ import annotations

import numpy as np

from .noise_levels import Panel
from .trends import NEIGHBOURS

MOST = 4
WIDTHS = (1, 2, 3)
BENDS = 3
HALF = NEIGHBOURS // 2


def jump_gains(
    panel: Panel, residuals: np.ndarray, used: np.ndarray, granted: int = 1
) -> np.ndarray:
    """Return how much up to four jumps of each trend save beyond the first, (draws, 3).

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
    granted
        Jumps that do not count: 1, or 0 for (draws, 4).

    Examples
    --------
    >>> values = (
    ...     np.add.outer(np.arange(20) >= 6, [0.0]) + (np.arange(20) >= 13)[:, None]
    ... )
    >>> panel = Panel.of(np.arange(20.0), values)
    >>> noise = np.random.default_rng(0).normal(size=(20, 1))
    >>> gains = jump_gains(
    ...     panel, panel.residuals(np.stack([values + noise / 99, noise])), np.r_[0]
    ... )
    >>> gains.shape, bool(gains[0, 0] > 3 * gains[1, 0])
    ((2, 3), True)
    """
    total = np.zeros((len(residuals), MOST - granted))
    for columns, rows, matrix in panel.groups:
        inner = residuals[:, rows[HALF:-HALF]][:, :, np.searchsorted(used, columns)]
        # (draws * columns, n).
        draws = np.moveaxis(inner, 2, 1).reshape(-1, matrix.shape[0])
        sizes = [
            np.abs(part).mean(axis=1)
            for part in _without_jumps(draws, _patterns(matrix))
        ]
        saved = np.log(np.maximum(sizes, np.finfo(float).tiny)) * matrix.shape[0]
        gains = (saved[granted] - saved[granted + 1 :]).T
        total += gains.reshape(len(residuals), len(columns), -1).sum(axis=1)
    return total


def without_bends(panel: Panel, residuals: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return residuals (draws, T, K) without the three bends of each trend that fit them best.

    A bend is a jump, or a rise over two or three checkpoints. See `jump_gains`.

    Examples
    --------
    >>> values = (
    ...     5.0 * (np.arange(20) >= 6)[:, None] + 3.0 * (np.arange(20) >= 13)[:, None]
    ... )
    >>> panel = Panel.of(np.arange(20.0), values)
    >>> straight = without_bends(panel, panel.residuals(values)[None], np.r_[0])
    >>> float(np.nanmax(np.abs(straight))) < 1e-9
    True
    """
    residual = residuals.copy()
    for columns, rows, matrix in panel.groups:
        patterns = _patterns(matrix)
        inside = rows[HALF:-HALF]
        for k in np.searchsorted(used, columns):
            residual[:, inside, k] = _without_jumps(residuals[:, inside, k], patterns)[
                BENDS
            ]
    return residual


def _patterns(matrix: np.ndarray) -> np.ndarray:
    """Return what a jump, or a rise over two or three values, leaves in residuals, (n, C)."""
    number = np.arange(matrix.shape[1])
    rises = [
        np.clip((number - start + 1) / width, 0, 1)
        for width in WIDTHS
        for start in range(1, len(number) - width + 1)
    ]
    return matrix @ np.stack(rises, axis=1)


def _without_jumps(residuals: np.ndarray, jumps: np.ndarray) -> list[np.ndarray]:
    """Return residuals (draws, n) without 0, 1, ..., `MOST` jumps, whose patterns are (n, C)."""
    norm = np.linalg.norm(jumps, axis=0)
    gram = jumps.T @ jumps
    along = residuals @ jumps
    places = np.zeros((len(residuals), 0), dtype=np.int64)
    series_left = [residuals]
    unexplained = along
    for _ in range(MOST):
        fit = np.abs(unexplained) / norm
        np.put_along_axis(fit, places, -1.0, axis=1)  # each place once
        places = np.concatenate([places, fit.argmax(axis=1)[:, None]], axis=1)
        inner = gram[places[:, :, None], places[:, None, :]]
        sizes = np.linalg.solve(
            inner, np.take_along_axis(along, places, axis=1)[..., None]
        )
        unexplained = along - np.einsum("dk,dkc->dc", sizes[..., 0], gram[places])
        series_left.append(
            residuals - np.einsum("dk,dkn->dn", sizes[..., 0], jumps.T[places])
        )
    return series_left
