"""The first screen's picture for papers: the loss over the life lines of concepts."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure, SubFigure

from ...words.content import Content
from ...words.formats import number, with_interval
from ...words.labels import truncate
from ...words.landmarks import control_curve
from ..colours import BASE, LEVELS, PROGRESS, ramp
from ..concepts.lives import Concept, Concepts, line_names
from ..first_screen.screen import FirstScreen
from ..scales import StepScale, pick_ticks
from .frame import FONT, PAGE, TALLEST, hatch

_ROW, _LOSS = 0.15, 1.1  # inches
_TINT = ramp(PROGRESS["light"], LEVELS)[LEVELS // 2]
_INK, _INK_2, _NULL = (BASE["light"][name] for name in ("ink", "ink-2", "null"))


def draw_life_figure(content: Content, first: FirstScreen) -> Figure:
    """Return the loss with its lines and controls over the life lines, on one step axis."""
    figure = Figure(figsize=(PAGE, life_height(first, TALLEST)), layout="constrained")
    fill_life(figure, content, first)
    return figure


def life_height(first: FirstScreen, most: float) -> float:
    """Return how high the picture is in inches, at most `most`."""
    return min(sum(_heights(first)) + 0.75, most)


def _heights(first: FirstScreen) -> list[float]:
    """Return the heights of the loss and of the life lines, of those that there are."""
    lines = first.concepts.lines if first.concepts else ()
    return [_LOSS] * (first.loss is not None) + [_ROW * len(lines)] * bool(lines)


def fill_life(figure: Figure | SubFigure, content: Content, first: FirstScreen) -> None:
    """Draw the loss and the life lines on a figure or a part of one."""
    lines, heights = first.concepts.lines if first.concepts else (), _heights(first)
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
    axes = list(panels.ravel())
    scale = StepScale(content.steps, "log")
    if first.loss is not None:
        _draw_loss(axes[0], content, first, scale)
    if first.concepts is not None and lines:
        _draw_lines(axes[-1], first.concepts, scale)
    edges = scale.edges(content.steps)
    axes[-1].set_xlim(min(edges.min(), -0.02), max(edges.max(), 1.02))
    ticks = pick_ticks(scale.ticks(), PAGE * 0.6 * 72, 0.6 * FONT)
    axes[-1].set_xticks([t.position for t in ticks], [t.label for t in ticks])
    axes[-1].set_xlabel(content.clock)


def _draw_loss(axes: Axes, content: Content, first: FirstScreen, scale: StepScale) -> None:
    track, loss = content.track, first.loss
    assert track is not None and loss is not None
    at = scale.positions(track.steps)
    control = control_curve(content)
    ends = [(f"run {number(loss.last, 0.1)}", loss.last, _INK)]
    if control is not None:
        low, high = (np.asarray(side) for side in control)
        axes.fill_between(at, low, high, color=_NULL, alpha=0.5, linewidth=0)
        ends.append(("control", float((low[-1] + high[-1]) / 2), _INK_2))
    levels = {line.words: line.level for line in loss.lines.values()}
    if math.isfinite(loss.uniform):
        levels["blind guess"] = loss.uniform
    for words, level in levels.items():
        axes.axhline(level, color=_INK_2, linewidth=0.6, linestyle="--")
        ends.append((f"{words} {number(level, 0.1)}", level, _INK_2))
    axes.plot(at, track.values, color=_INK, linewidth=1.1)
    axes.set_title(truncate(track.title, 60), loc="left", fontsize=FONT)
    axes.set_ylabel(truncate(track.units, 24))
    _label_ends(axes, ends)


def _label_ends(axes: Axes, ends: list[tuple[str, float, str]]) -> None:
    """Write labels at the ends of their lines, moved apart where they would overlap."""
    finite = sorted((e for e in ends if math.isfinite(e[1])), key=lambda end: -end[1])
    low, high = axes.get_ylim()
    apart, above = (high - low) * FONT * 1.25 / (_LOSS * 72), math.inf
    for words, value, colour in finite:
        above = min(value, above - apart)
        axes.annotate(
            words, (1, above), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", color=colour,
        )  # fmt: skip


def _draw_lines(axes: Axes, concepts: Concepts, scale: StepScale) -> None:
    edges = scale.edges(concepts.data["step"].values.astype(int))
    for y, concept in enumerate(concepts.lines):
        _draw_cells(axes, concepts, concept, edges, y)
        if math.isfinite(concept.born):
            ends = [
                e if math.isfinite(e) else concept.born for e in (concept.after, concept.before)
            ]
            low, high, at = scale.positions([*ends, concept.born])
            axes.plot([low, high], [y, y], color="white", linewidth=2.6)
            axes.plot([low, high], [y, y], color=_INK, linewidth=0.9)
            axes.plot(at, y, "o", color=_INK, markersize=2.6)
        axes.annotate(
            _birth(concept), (1, y), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", color=_INK_2,
        )  # fmt: skip
    names = line_names(concepts.lines)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)


def _birth(concept: Concept) -> str:
    if math.isfinite(concept.born):
        return with_interval(concept.born, concept.after, concept.before)
    return concept.kind


def _draw_cells(
    axes: Axes, concepts: Concepts, concept: Concept, edges: np.ndarray, y: int
) -> None:
    """Draw one cell for each step: tinted by the squared share of the peak, or hatched."""
    strength, course = (
        concepts.arrays.over_steps(name)[concept.place] for name in ("strength", "readability")
    )
    share = np.clip(strength / concept.peak, 0, 1)
    clear = np.nan_to_num(course, nan=-1.0) >= concepts.readable
    is_finite = np.isfinite(share)
    boxes = np.array([
        [(a, y - 0.36), (b, y - 0.36), (b, y + 0.36), (a, y + 0.36)] for a, b in edges
    ])  # fmt: skip
    tinted = is_finite & clear
    tints = [to_rgba(_TINT, 0.03 + 0.87 * value**2) for value in share[tinted]]
    if tinted.any():
        axes.add_collection(PolyCollection(list(boxes[tinted]), facecolors=tints, linewidths=0))
    if (is_finite & ~clear).any():
        hatch(axes, list(boxes[is_finite & ~clear]), _NULL)
