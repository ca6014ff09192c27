"""The developmental chart for papers: the page's own drawing, put on a matplotlib figure.

The chart is drawn once, as SVG (:mod:`ontogeny.report.chart`); here its few kinds of elements and
its style sheet are read and drawn again, so that both can never differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path

from ..canvas import ChartLayout
from ..chart import draw_chart
from ..content import Content
from ..style import chart_rules
from .frame import PAGE, TALLEST

__all__ = ["PAPER", "draw_chart_figure"]

PAPER = ChartLayout("paper", 780, 215, 118, 15, 10.8, 26, legend_left=0)
"""The chart's form for two columns of a paper."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COMMAND = re.compile(r"([MLHVhvlz])([^MLHVhvlz]*)")
_ANCHORS = {"middle": "center", "end": "right"}
Look = Mapping[str, str]


def draw_chart_figure(content: Content) -> Figure:
    """Return the developmental chart, two columns wide."""
    root = ElementTree.fromstring(draw_chart(content, PAPER, style=" ").svg)
    left, top, width, height = map(float, root.get("viewBox", "").split())
    inches = min(PAGE / width, TALLEST / height)
    figure = Figure(figsize=(width * inches, height * inches))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, left + width), ylim=(top + height, top))
    axes.axis("off")
    drawer = _Drawer(axes, 72 * inches)
    for element, look in _walk(root, (), chart_rules(), {"font-size": str(PAPER.font)}):
        drawer.draw(element, look)
    return figure


def _walk(
    element: ElementTree.Element,
    above: tuple[set[str], ...],
    rules: Mapping[str, Mapping[str, str]],
    inherited: Look,
) -> Iterator[tuple[ElementTree.Element, Look]]:
    """Give every element with its look: what its classes and those above it say, later wins."""
    for child in element:
        tag = child.tag.rpartition("}")[2]
        if tag in ("defs", "style", "title"):
            continue
        names = {*child.get("class", "").split(), tag}
        look = dict(inherited)
        for selector, rule in rules.items():
            if any(_matches(one.split(), above, names) for one in selector.split(",")):
                look.update(rule)
        if child.get("fill"):
            look["fill"] = child.get("fill", "")
        yield child, look
        yield from _walk(child, (*above, names), rules, {"font-size": look["font-size"]})


def _matches(selector: list[str], above: tuple[set[str], ...], names: set[str]) -> bool:
    """Whether a selector of classes and tags ends at this element; ``.chart`` is around all."""
    parts = [part.removeprefix(".") for part in selector if part != ".chart"]
    if not parts or parts[-1] not in names:
        return False
    return all(any(part in each for each in above) for part in parts[:-1])


class _Drawer:
    """Draws SVG elements on axes whose unit is `points` printer's points long."""

    def __init__(self, axes: Axes, points: float) -> None:
        self.axes = axes
        self.points = points

    def draw(self, element: ElementTree.Element, look: Look) -> None:
        tag = element.tag.rpartition("}")[2]
        if tag == "text":
            self._text(element, look)
        elif tag == "path":
            self._shape(_outline(element.get("d", "")), look)
        elif tag == "rect":
            x, y, width, height = (float(element.get(k, 0)) for k in ("x", "y", "width", "height"))
            self._shape(_outline(f"M{x} {y}h{width}v{height}h{-width}z"), look)
        elif tag == "circle":
            x, y, radius = (float(element.get(k, 0)) for k in ("cx", "cy", "r"))
            self.axes.add_patch(Circle((x, y), radius, facecolor=look["fill"], linewidth=0))

    def _text(self, element: ElementTree.Element, look: Look) -> None:
        size = _size(look["font-size"])
        self.axes.text(
            float(element.get("x", 0)), float(element.get("y", 0)), element.text or "",
            color=look["fill"], fontsize=size * self.points,
            ha=_ANCHORS.get(look.get("text-anchor", ""), "left"), va="baseline",
            fontweight="bold" if look.get("font-weight") == "600" else "normal",
        )  # fmt: skip

    def _shape(self, path: Path | None, look: Look) -> None:
        fill = look.get("fill", "black")
        if path is None or fill == "transparent":
            return
        hatched = fill.startswith("url(")
        stroke = look.get("stroke", "none")
        width = float(look.get("stroke-width", 1)) * self.points if stroke != "none" else 0
        patch = PathPatch(
            path,
            facecolor="none" if hatched else fill,
            edgecolor=stroke,
            linewidth=width,
            linestyle=":" if "stroke-dasharray" in look else "-",
            capstyle="round" if look.get("stroke-linecap") == "round" else "butt",
            hatch="/////" if hatched else None,
        )
        self.axes.add_patch(patch)


def _size(text: str) -> float:
    """Return a size of text in SVG units; ``em`` is a share of the chart's own size."""
    return PAPER.font * float(text[:-2]) if text.endswith("em") else float(text)


def _outline(shape: str) -> Path | None:
    """Read the SVG path commands that the chart uses: M, L, H, V, h, v, l and z."""
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    x = y = 0.0
    start = (0.0, 0.0)
    for command, rest in _COMMAND.findall(shape):
        numbers = [float(n) for n in _NUMBER.findall(rest)]
        if command == "z":
            x, y = start
            points.append(start)
            codes.append(int(Path.CLOSEPOLY))
            continue
        for dx, dy, absolute in _moves(command, numbers):
            x = dx if absolute[0] else x + dx
            y = dy if absolute[1] else y + dy
            codes.append(int(Path.MOVETO if command == "M" else Path.LINETO))
            points.append((x, y))
        if command == "M":
            start = (x, y)
    return Path(np.asarray(points), codes) if points else None


def _moves(command: str, numbers: list[float]) -> Iterator[tuple[float, float, tuple[bool, bool]]]:
    """Give each move of a command as x, y, and which of them are absolute."""
    if command in "Hh":
        yield from ((n, 0.0, (command == "H", False)) for n in numbers)
    elif command in "Vv":
        yield from ((0.0, n, (False, command == "V")) for n in numbers)
    else:
        both = command in "ML"
        for x, y in zip(numbers[::2], numbers[1::2], strict=True):
            yield x, y, (both, both)
