"""Null comparisons: a dot for each row beside its nulls' bands.

It is filled where its interval, or without one its value, lies outside all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .frame import TALLEST, Frame, set_dimension_axis
from .view import FigureView, Panel, span_of

_BAND_ALPHAS = (0.9, 0.45)


def draw_nulls(view: FigureView) -> Figure:
    """Return the figure."""
    panels = view.panels
    count = len(view.labels("rows"))
    frame = Frame(view, min(count * 0.15 + 0.2, TALLEST - 0.9), across=3)
    values = [view.values(panel, "rows") for panel in panels]
    ends = [_ends(view, view.figure.interval or (), panel) for panel in panels]
    bands = [
        [_ends(view, (band.lower, band.upper), panel) for band in view.figure.bands]
        for panel in panels
    ]
    everything = list(chain(values, ends, *bands))
    for i, axes in enumerate(frame.axes):
        _draw_bands(axes, view, bands[i])
        _draw_dots(axes, view, values[i], ends[i], bands[i])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        set_dimension_axis(axes, view, "rows", frame.panel_height, "y")
    frame.axes[0].set_xlim(*span_of(everything))
    frame.axes[0].set_ylim(count - 0.4, -0.6)
    frame.name_axes(view.value_words, "")
    frame.legend(_legend(view))
    return frame.figure


def _ends(view: FigureView, names: Sequence[str], panel: Panel) -> np.ndarray:
    """Return lower and upper ends, shape (2, rows), or (0, rows) where there are none."""
    ends = [view.companion(name, panel, "rows") for name in names]
    return np.stack(ends) if ends else np.empty((0, len(view.labels("rows"))))


def _draw_bands(axes: Axes, view: FigureView, bands: list[np.ndarray]) -> None:
    """Lay bands of several nulls over one another within a row; one without width is a tick."""
    count = len(bands)
    for b, (low, high) in enumerate(bands):
        rows = np.arange(len(low)) + (b - (count - 1) / 2) * min(0.36, 0.6 / count)
        colour = view.base["null"]
        alpha = _BAND_ALPHAS[b % 2]
        width = 2.6 if count > 1 else 4.5
        axes.hlines(
            rows, low, high, colors=colour, alpha=alpha, linewidth=width, zorder=1
        )
        flat = low == high
        axes.plot(
            low[flat],
            rows[flat],
            "|",
            color=colour,
            alpha=alpha,
            markersize=width + 1,
            markeredgewidth=2,
            zorder=1,
        )


def _draw_dots(
    axes: Axes,
    view: FigureView,
    values: np.ndarray,
    ends: np.ndarray,
    bands: list[np.ndarray],
) -> None:
    rows = np.arange(len(values))
    if len(ends):
        axes.hlines(
            rows, ends[0], ends[1], colors=view.base["ink"], linewidth=0.8, zorder=2
        )
    # A null without numbers tells nothing about the value, so it cannot be outside of it.
    outside = np.isfinite(values)
    # A value alone almost never equals a null without width, such as chance.
    spans = ends if len(ends) else np.stack([values, values])
    least, most = np.where(np.isfinite(spans).all(axis=0), spans, values)
    for low, high in bands:
        outside &= (most < low) | (least > high)
    grouped = view.axis("rows").group is not None
    colours = [
        colour if grouped else view.base["ink"] for colour, _ in view.looks("rows")
    ]
    filled = [
        c if far else view.base["paper"]
        for c, far in zip(colours, outside, strict=True)
    ]
    axes.scatter(
        values,
        rows,
        s=14,
        c=filled,
        edgecolors=colours,
        linewidths=0.9,
        zorder=3,
        clip_on=False,
    )


def _legend(view: FigureView) -> list[Line2D]:
    bands = [
        Line2D(
            [],
            [],
            color=view.base["null"],
            alpha=_BAND_ALPHAS[b % 2],
            linewidth=4,
            label=band.label,
        )
        for b, band in enumerate(view.figure.bands)
        if band.label
    ]
    if not view.figure.bands:
        return bands
    ink = view.base["ink"]
    paper = view.base["paper"]
    outside = ("interval " if bool(view.figure.interval) else "") + "outside every null"
    dots = [
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=3.8,
            color=ink,
            label=words,
            markerfacecolor=fill,
            markeredgewidth=0.9,
        )
        for words, fill in ((outside, ink), ("not", paper))
    ]
    return bands + dots
