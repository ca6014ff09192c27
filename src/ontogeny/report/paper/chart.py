"""The developmental chart for papers: the page's own marks, put on a matplotlib figure."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path

from ...words.content import Content
from ..chart.canvas import ChartLayout, Mark
from ..chart.draw import MARGIN, lay_chart
from ..style import chart_rules
from .frame import PAGE, TALLEST

# The forms of the chart for two columns of a paper; the text of marks alone has 7 points.
PAPER = {
    "cells": ChartLayout("paper", 780, 215, 118, 15, 10.8, 26),
    "intervals": ChartLayout("paper", 700, 200, 112, 13.5, 10.5, 26),
}

_ANCHORS = {"middle": "center", "end": "right"}


def draw_chart_figure(
    content: Content, view: str = "cells", ax: Axes | None = None
) -> Figure:
    """Return one view of the developmental chart, two columns wide, or drawn on `ax`."""
    layout = PAPER[view]
    canvas, _ = lay_chart(content, layout, (view,))
    width = layout.width + 2 * MARGIN
    height = np.ceil(canvas.y + 6) + 2 * MARGIN
    axes, figure, inches = _axes_for(width, height, ax)
    axes.set(xlim=(-MARGIN, width - MARGIN), ylim=(height - MARGIN, -MARGIN))
    axes.axis("off")
    rules = chart_rules()
    for part in canvas.parts:
        if isinstance(part, Mark):
            _draw(axes, part, _look(part, rules), layout.font, 72 * inches)
    return figure


def _axes_for(width: float, height: float, ax: Axes | None) -> tuple[Axes, Any, float]:
    """Return axes, their figure, and how many inches a unit of the chart is on them."""
    if ax is not None:
        figure: Any = ax.figure
        size = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
        ax.set_aspect("equal")
        return ax, figure, min(size.width / width, size.height / height)
    inches = min(PAGE / width, TALLEST / height)
    figure = Figure(figsize=(width * inches, height * inches))
    return figure.add_axes((0, 0, 1, 1)), figure, inches


def _look(mark: Mark, rules: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the properties that the style sheet gives a mark, those of its row last."""
    classes = mark.style.split()
    within = map(" ".join, product(mark.within.split(), classes))
    look: dict[str, str] = {}
    for name in ("text" if mark.words is not None else "path", *classes, *within):
        look.update(rules.get(name, {}))
    return look


def _draw(
    axes: Axes, mark: Mark, look: dict[str, str], font: float, points: float
) -> None:
    """Draw a mark on axes whose unit is `points` printer's points long."""
    fill = look.get("fill", "black")
    stroke = look.get("stroke", "none")
    (x, y), *_ = mark.lines[0] if mark.lines else [(0.0, 0.0)]
    if mark.words is not None:
        size = float(look.get("font-size", "1em").removesuffix("em")) * font
        axes.text(
            x,
            y,
            mark.words,
            color=fill,
            fontsize=size * points,
            va="baseline",
            ha=_ANCHORS.get(look.get("text-anchor", ""), "left"),
            fontweight="bold" if look.get("font-weight") == "600" else "normal",
        )
    elif mark.radius:
        width = float(look.get("stroke-width", 1)) * points if stroke != "none" else 0
        edge = stroke if stroke != "none" else fill
        axes.add_patch(
            Circle((x, y), mark.radius, facecolor=fill, edgecolor=edge, linewidth=width)
        )
    elif mark.lines and fill != "transparent":
        patch = PathPatch(
            _path(mark),
            facecolor="none" if mark.hatched else fill,
            edgecolor=stroke,
            linewidth=float(look.get("stroke-width", 1)) * points
            if stroke != "none"
            else 0,
            linestyle=":" if "stroke-dasharray" in look else "-",
            capstyle="round" if look.get("stroke-linecap") == "round" else "butt",
            hatch="/////" if mark.hatched else None,
        )
        axes.add_patch(patch)


def _path(mark: Mark) -> Path:
    ends = 1 if mark.closed else 0
    paths = [Path([*line, *line[:ends]], closed=mark.closed) for line in mark.lines]
    return Path.make_compound_path(*paths)
