"""The first picture of a single checkpoint: its loss on a line with what guesses cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import xarray as xr

from ...words.content import Content
from ...words.formats import number, sentence_start
from ...words.labels import truncate
from ...words.landmarks import LossStory, read_loss, track_node
from ..chart.canvas import NARROW, WIDE, Canvas, ChartLayout

MOST_LAYERS = 8
_LAYOUTS = (
    replace(WIDE, width=860, row=20, left=200, right=70),
    replace(NARROW, left=154, right=44, label_characters=28),
)


@dataclass(frozen=True)
class Level:
    """What one way to predict costs, with its interval; `dot` is the style of its mark."""

    words: str
    value: float
    low: float
    high: float
    dot: str = "open-dot"


def loss_picture(content: Content, _: object = None) -> str:
    """Return the loss of one model beside its lines, wide and for phones; empty without a loss."""
    loss, node = read_loss(content), track_node(content)
    if loss is None or node is None:
        return ""
    levels = [level for level in _levels(content, loss, node.dataset) if level.value == level.value]
    return "".join(_drawn(levels, loss, layout) for layout in _LAYOUTS)


def _levels(content: Content, loss: LossStory, data: xr.Dataset) -> list[Level]:
    """Return the model, its layers and the lines, from the costliest down."""
    low, high = (float(data[f"loss_{end}"][0]) for end in ("low", "high"))
    lines = [Level("blind guess", loss.uniform, loss.uniform, loss.uniform)]
    lines += [Level(x.words, x.level, x.level, x.level) for x in loss.lines.values()]
    lines += [Level(x.words, x.level, x.level, x.level) for x in loss.of_model.values()]
    if "loss_renamed" in data:  # the first renaming leaves every word as it is
        ends = np.quantile(data["loss_renamed"].values[0, 1:], (0.5, 0.025, 0.975))
        lines.append(Level("words renamed", *map(float, ends)))
    lines += [layer for node in content.nodes for layer in _of_layers(node.dataset)]
    lines.append(Level("this model", loss.last, low, high, "dot"))
    return sorted(lines, key=lambda level: -level.value)


def _of_layers(data: xr.Dataset) -> list[Level]:
    """Return what a lens reads off at most some layers."""
    if "lens_loss" not in data or data.sizes.get("step") != 1:
        return []
    count = data.sizes["layer"]
    places = np.unique(np.linspace(0, count - 1, min(count, MOST_LAYERS)).round().astype(int))
    own = data["lens_loss"]
    ends = [data.get(f"lens_loss{end}", own).values[0] for end in ("", "_low", "_high")]
    names = [str(data["layer"].values[i]) for i in places]
    return [
        Level(f"read off after {name}", *(float(end[i]) for end in ends))
        for name, i in zip(names, places, strict=True)
    ]


def _drawn(levels: list[Level], loss: LossStory, layout: ChartLayout) -> str:
    canvas = Canvas(layout, (0,))
    ends = [end for level in levels for end in (level.low, level.high) if math.isfinite(end)]
    apart = 10.0 ** math.floor(math.log10(max(ends)))
    apart *= next(share for share in (0.2, 0.5, 1.0, 2.0) if max(ends) <= 6 * share * apart)
    ticks = np.arange(0, max(ends) + apart, apart)

    def x(value: float) -> float:
        return layout.left + layout.plot_width * value / float(ticks[-1])

    canvas.text(0, layout.font, sentence_start(f"{loss.title}, {loss.units}"), "group")
    top = canvas.y = layout.font + 10
    for level in levels:
        middle, base = canvas.y + layout.row / 2, canvas.y + layout.row / 2 + layout.font * 0.35
        canvas.text(layout.left - 10, base, truncate(level.words, layout.label_characters), "end")
        canvas.lines("guide", [[(layout.left, middle), (x(ticks[-1]), middle)]])
        canvas.whisker(x(level.low), middle, x(level.value), x(level.high), level.dot)
        canvas.text(layout.width, base, number(level.value, 0.1), "value end")
        canvas.y += layout.row
    canvas.lines("boundary", [[(x(loss.last), top), (x(loss.last), canvas.y)]])
    canvas.lines("axis", [[(layout.left, canvas.y), (x(ticks[-1]), canvas.y)]])
    for tick in ticks:
        canvas.text(x(tick), canvas.y + layout.font + 3, f"{tick:g}", "tick middle")
    words = "; ".join(f"{level.words} {number(level.value, 0.1)}" for level in levels)
    head = f'class="chart-{layout.name}" viewBox="0 0 {layout.width:g} {canvas.y + 20:.0f}"'
    label = f'role="img" aria-label="{escape(f"{loss.title}: {words}")}"'
    return f'<svg {head} font-size="{layout.font}" {label}>{canvas.svg}</svg>'
