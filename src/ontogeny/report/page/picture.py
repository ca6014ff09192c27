"""The picture of the first screen of one model as SVG: its loss beside ways to predict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from html import escape

import numpy as np
import xarray as xr

from ...words.content import Content
from ...words.formats import number, sentence_start
from ...words.labels import short_names, truncate
from ...words.landmarks import LossCurve, read_loss
from ..chart.canvas import NARROW, WIDE, Canvas, ChartLayout

MOST_LAYERS = 8
MODEL = "this model"
_LAYOUTS = (
    replace(WIDE, name="one-wide", width=860, row=20, left=216),
    replace(NARROW, name="one-narrow", left=188),
)

Level = tuple[str, float, float, float]
"""One way to predict, what it costs, and the interval of that."""


def loss_picture(content: Content) -> str:
    """Return the loss of one model beside its lines, wide and for phones; empty without a loss."""
    loss = read_loss(content)
    node = content.track_node
    if loss is None or node is None:
        return ""
    levels = [*_levels(loss, node.dataset)]
    most = _most(loss, levels)
    for part in content.nodes:
        levels += _of_layers(part.dataset)
    levels = [
        (content.voice.fill(words), at, low, high) for words, at, low, high in levels
    ]
    levels = sorted(
        (x for x in levels if math.isfinite(x[1])), key=lambda level: -level[1]
    )
    return "".join(_drawn(levels, loss, most, layout, node.id) for layout in _LAYOUTS)


def _most(loss: LossCurve, levels: list[Level]) -> float:
    """Return where the axis ends: at what the model or a guess costs.

    What renamed words or early layers cost is cut: 19 nats of renamed words pressed a model of 3.7
    and its guesses into the first half.
    """
    own = {MODEL, *loss.levels, *loss.of_model}
    ends = [end for words, *values in levels if words in own for end in values]
    return max(filter(math.isfinite, ends))


def _levels(loss: LossCurve, data: xr.Dataset) -> Iterator[Level]:
    """Give the model, the lines under its loss, and the loss of texts with renamed words."""
    ends = [float(data.get(f"loss_{end}", data["loss"])[0]) for end in ("low", "high")]
    yield MODEL, loss.last, ends[0], ends[1]
    for words, level in {**loss.levels, **loss.of_model}.items():
        yield words, level, level, level
    if "loss_renamed" in data:  # the first renaming leaves every word as it is
        ends = np.quantile(
            data["loss_renamed"].values[0, 1:], (0.5, 0.025, 0.975)
        ).tolist()
        yield "renamed {word}s", ends[0], ends[1], ends[2]


def _of_layers(data: xr.Dataset) -> Iterator[Level]:
    """Give what a lens reads off at most some layers."""
    if "lens_loss" in data:
        count = data.sizes["layer"]
        loss = data["lens_loss"]
        names = short_names(list(map(str, data["layer"].values)))
        for i in np.unique(
            np.linspace(0, count - 1, min(count, MOST_LAYERS)).round().astype(int)
        ):
            ends = [
                float(data.get(f"lens_loss{end}", loss)[0, i])
                for end in ("", "_low", "_high")
            ]
            yield f"read off {names[i]}", ends[0], ends[1], ends[2]


def _drawn(
    levels: list[Level], loss: LossCurve, most: float, layout: ChartLayout, section: str
) -> str:
    """Return one form of the picture, in which each name leads to the `section` on the loss."""
    canvas = Canvas(layout, (0,))
    top = layout.font + 10
    apart = 10.0 ** math.floor(math.log10(most))
    apart *= next(share for share in (0.2, 0.5, 1.0, 2.0) if most <= 6 * share * apart)
    ticks = np.arange(0, most + apart, apart).tolist()
    end = layout.left + layout.plot_width

    def x(value: float) -> float:
        return layout.left + layout.plot_width * value / ticks[-1]

    title = ", ".join(filter(None, [loss.title, loss.units]))
    canvas.text(0, layout.font, sentence_start(title), "group")
    for i, (words, value, *ends) in enumerate(levels):
        middle = top + (i + 0.5) * layout.row
        base = middle + layout.font * 0.35
        with canvas.tagged("a", f'href="#{section}" tabindex="-1"'):
            canvas.text(layout.left - 10, base, truncate(words, 30), "end")
        canvas.lines("guide", [[(layout.left, middle), (end, middle)]])
        is_cut = value > ticks[-1]
        if not is_cut:
            low, high = (e if math.isfinite(e) else value for e in ends)
            style = "dot" if words == MODEL else "open-dot"
            canvas.whisker(x(low), middle, x(value), min(x(high), end), style)
        arrow = "→ " if is_cut else ""
        canvas.text(layout.width, base, f"{arrow}{number(value, 0.1)}", "value end")
    bottom = top + len(levels) * layout.row
    canvas.lines("boundary", [[(x(loss.last), top), (x(loss.last), bottom)]])
    canvas.lines("axis", [[(layout.left, bottom), (end, bottom)]])
    for tick in ticks:
        canvas.text(x(tick), bottom + layout.font + 3, f"{tick:g}", "tick middle")
    label = "; ".join(f"{words} {number(value, 0.1)}" for words, value, *_ in levels)
    kind = layout.name.replace("one", "chart")
    size = f"{layout.width:g} {bottom + 20:.0f}"
    head = f'class="{kind}" viewBox="0 0 {size}"'
    role = f'role="img" aria-label="{escape(f"{loss.title}: {label}")}"'
    return f'<svg {head} font-size="{layout.font}" {role}>{canvas.svg}</svg>'
