"""Rows with a mark for each run on one axis, for papers."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ...words.labels import truncate
from .frame import TALLEST, Frame, set_step_ticks
from .view import FigureView, span_of

SYMBOLS = ("o", "s", "D", "^", "P", "*")


def draw_marks(view: FigureView) -> Figure:
    """Return the figure."""
    panels = view.panels
    rows = len(view.labels("rows"))
    series = view.labels("series")
    pitch = max(0.15, 0.07 * len(series))
    frame = Frame(view, min(rows * pitch + 0.2, TALLEST - 0.9), across=2)
    spread = (np.arange(len(series)) - (len(series) - 1) / 2) * min(
        0.2, 0.7 / len(series)
    )
    everything = []
    for axes, panel in zip(frame.axes, panels, strict=True):
        values = _placed(view, view.values(panel, "rows", "series"))
        ends = [
            _placed(view, view.companion(name, panel, "rows", "series"))
            for name in view.figure.interval or ()
        ]
        filled = np.ones(values.shape, dtype=bool)
        if view.figure.filled:
            filled = view.companion(view.figure.filled, panel, "rows", "series") > 0
        ys = np.arange(rows)[:, None] + spread
        if ends:
            low, high = ends
            axes.hlines(
                ys, low, high, colors=view.base["ink-3"], linewidth=0.7, zorder=2
            )
        for k in range(len(series)):
            _draw(axes, view, values[:, k], ys[:, k], filled[:, k], k)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_yticks(
            range(rows), [truncate(name, 32) for name in view.labels("rows")]
        )
        everything += [values, *ends]
    on_steps = view.figure.x_scale == "step"
    for axes in frame.axes:
        if on_steps:
            set_step_ticks(axes, view.scale, frame.width / len(frame.axes) * 72 * 0.7)
        else:
            axes.set_xlim(*span_of(everything))
            axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylim(rows - 0.4, -0.6)
    frame.name_axes(view.content.voice.clock if on_steps else view.value_words, "")
    frame.legend(_legend(view, series))
    return frame.figure


def _placed(view: FigureView, values: np.ndarray) -> np.ndarray:
    return view.scale.positions(values) if view.figure.x_scale == "step" else values


def _draw(
    axes: Axes,
    view: FigureView,
    xs: np.ndarray,
    ys: np.ndarray,
    filled: np.ndarray,
    k: int,
) -> None:
    ink = view.base["ink"]
    paper = view.base["paper"]
    mask = np.isfinite(xs)
    axes.scatter(
        xs[mask],
        ys[mask],
        s=12,
        marker=SYMBOLS[k % len(SYMBOLS)],
        edgecolors=ink,
        facecolors=[ink if full else paper for full in filled[mask]],
        linewidths=0.7,
        zorder=3,
    )


def _legend(view: FigureView, series: list[str]) -> list[Line2D]:
    ink = view.base["ink"]
    paper = view.base["paper"]
    style = {"linestyle": "", "markersize": 3.6, "color": ink, "markeredgewidth": 0.7}
    handles = [
        Line2D([], [], marker=SYMBOLS[k % len(SYMBOLS)], label=name, **style)
        for k, name in enumerate(series)
        if name
    ]
    if view.figure.filled:
        words = f"open: {view.figure.open_label}"
        handles.append(
            Line2D([], [], marker="o", markerfacecolor=paper, label=words, **style)
        )
    return handles
