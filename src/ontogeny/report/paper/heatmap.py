"""Heatmaps: one value for each pair of labels, the same colours in all panels."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ...words.labels import truncate
from .frame import FONT, AuditMarks, Frame, colour_bar, hatch, set_dimension_axis
from .view import FigureView, norm_of

# More cells than this are stored as a picture within PDF and SVG.
_MOST_CELLS = 20_000


def draw_heatmap(view: FigureView) -> Figure:
    """Return the figure."""
    panels = view.panels
    x = view.axis("x")
    y = view.axis("y")
    downward = y.kind == "category"
    count = len(y)
    height = max(count * 0.13, 0.6) if downward else max(count * 0.06, 1.6)
    frame = Frame(view, min(height, 2.2 if len(panels) < 4 else 1.2), across=4)
    if view.figure.square:
        for axes in frame.axes:
            axes.set_aspect("equal")
    grids = [view.values(panel, "y", "x") for panel in panels]
    # One value alone lies in the middle of the scale.
    values = np.concatenate([grid.ravel() for grid in grids])
    norm = norm_of(values, view.figure.middle)
    colours = ScalarMappable(
        norm, LinearSegmentedColormap.from_list("values", view.ramp)
    )
    edges = x.edges(view.scale), y.edges(view.scale)
    for axes, grid in zip(frame.axes, grids, strict=True):
        _draw_cells(axes, view, grid, edges, colours, view.main.size > _MOST_CELLS)
        axes.spines[:].set_visible(False)
        axes.tick_params(axis="y", which="both", length=0)
        set_dimension_axis(axes, view, "x", 0.6 * frame.panel_width, cells=True)
        set_dimension_axis(axes, view, "y", frame.panel_height, "y", cells=True)
        axes.set_xlim(edges[0][0, 0], edges[0][-1, 1])
    ends = (edges[1][0, 0], edges[1][-1, 1])
    frame.axes[0].set_ylim(*(ends[::-1] if downward else ends))
    frame.name_axes(view.axis_words("x"), view.axis_words("y"))
    frame.legend([h for h in frame.axes[0].get_lines() if isinstance(h, AuditMarks)])
    if not any(np.isfinite(grid).any() for grid in grids):
        return frame.figure
    bar = colour_bar(frame, colours)
    bar.set_label(truncate(view.value_words, int(frame.height * 72 / FONT / 0.6)))
    return frame.figure


def _touching(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return edges that touch, and which cell lies between them: -1 where cells stand apart."""
    places = [edges[0, 0]]
    cells = []
    for i, (left, right) in enumerate(edges):
        if left - places[-1] > 1e-6:
            places.append(left)
            cells.append(-1)
        places.append(right)
        cells.append(i)
    return np.asarray(places), np.asarray(cells)


def _draw_cells(
    axes: Axes,
    view: FigureView,
    grid: np.ndarray,
    edges: tuple[np.ndarray, np.ndarray],
    colours: ScalarMappable,
    rasterized: bool,
) -> None:
    (xs, columns), (ys, rows) = map(_touching, edges)
    apart = (rows < 0)[:, None] | (columns < 0)
    values = np.ma.masked_where(
        apart, np.ma.masked_invalid(grid[np.ix_(rows, columns)])
    )
    axes.pcolormesh(
        xs,
        ys,
        values,
        cmap=colours.cmap,
        clim=colours.get_clim(),
        rasterized=rasterized,
    )
    missing = []
    for k, i in np.argwhere(~np.isfinite(grid)):
        x0, x1 = edges[0][i]
        y0, y1 = edges[1][k]
        missing.append([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
    if missing:
        hatch(axes, missing, view.base["null"])
