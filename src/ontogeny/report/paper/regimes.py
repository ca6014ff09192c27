"""Boundaries between regimes: a line with its interval, and a shade over the noisier side."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from .saving import FONT
from .view import FigureView, Panel

_ENDS = (-0.03, 1.03)
_SIDE, _INTERVAL = 0.14, 0.3
"""How strong the shades are of the noisier side and of the interval."""


def draw_regimes(axes: Axes, view: FigureView, panel: Panel) -> None:
    """Draw the boundaries of one panel: one for all lines, or one for each line."""
    labels: list[str] = []
    for regime in view.figure.boundaries:
        steps = (_read(view, panel, name) for name in (regime.step, regime.low, regime.high))
        at, low, high = map(view.scale.positions, steps)
        if len(at) > 1:
            _draw_own(axes, view, at, low, high)
        elif _ENDS[0] <= at[0] <= _ENDS[1]:  # not NaN, nor beyond the steps that are drawn
            ratio = _read(view, panel, regime.noise_ratio)[0]
            _draw_shared(axes, view, (at[0], low[0], high[0]), ratio)
            if regime.label not in labels:  # lines that look alike are named once
                _name(axes, view, regime.label, at[0], len(labels))
                labels.append(regime.label)


def _read(view: FigureView, panel: Panel, name: str | None) -> np.ndarray:
    """Return one number, or one for each line; NaN where there is none."""
    if name is None:
        return np.full(len(view.labels("series")), np.nan)
    return np.atleast_1d(view.at(name, panel).values.astype(float))


def _draw_shared(
    axes: Axes, view: FigureView, places: tuple[float, float, float], ratio: float
) -> None:
    at, low, high = places
    grey, ink = view.base["null"], view.base["ink-2"]
    if np.isfinite(ratio) and ratio != 1:
        side = (at, _ENDS[1]) if ratio > 1 else (_ENDS[0], at)
        axes.axvspan(*side, color=grey, alpha=_SIDE, linewidth=0, zorder=0)
    if np.isfinite(low) and np.isfinite(high):
        axes.axvspan(low, high, color=grey, alpha=_INTERVAL, linewidth=0, zorder=0)
    axes.axvline(at, color=ink, linewidth=0.8, zorder=1)


def _name(axes: Axes, view: FigureView, label: str, at: float, line: int) -> None:
    """Write a name beside its boundary, each a line below the one before."""
    right = at > 0.6
    axes.annotate(
        label, xy=(at, 1), xycoords=axes.get_xaxis_transform(),
        xytext=(-2 if right else 2, -1 - 1.2 * FONT * line), textcoords="offset points",
        color=view.base["ink-2"], ha="right" if right else "left", va="top",
    )  # fmt: skip


def _draw_own(
    axes: Axes, view: FigureView, at: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Draw a line in each colour; intervals lie above one another under the upper edge."""
    across = axes.get_xaxis_transform()
    pitch = min(0.03, 0.4 / len(at))
    for row, (colour, _) in enumerate(view.looks("series")):
        if not np.isfinite(at[row]):
            continue
        axes.axvline(at[row], color=colour, linewidth=0.7, alpha=0.75, zorder=1)
        if np.isfinite(low[row]) and np.isfinite(high[row]):
            height = 0.98 - pitch * row
            axes.plot(
                [low[row], high[row]], [height, height], color=colour, linewidth=1.6,
                transform=across, solid_capstyle="butt", label="_interval",
            )  # fmt: skip
