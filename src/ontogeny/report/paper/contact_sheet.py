"""A contact sheet of concepts for papers: name, birth, strength and one context of each."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...words.content import Content
from ...words.formats import step_text
from ..colours import BASE
from ..concepts.arrays import ConceptArrays
from ..concepts.contexts import middle
from ..concepts.lives import SHEET, Concept, Concepts, line_names
from ..concepts.tokens import Pieces
from ..scales import StepScale
from .frame import FONT, PAGE

ACROSS = 3
_CELL = 0.82  # inches
_TOKENS = 22  # characters of a context on each side of its strongest token


def draw_contact_sheet(content: Content, concepts: Concepts) -> Figure:
    """Return the sharpest concepts: those with a name, or all where none has one.

    There are at most 24, in eight rows of three.
    """
    shown_concepts = concepts.candidates[:SHEET]
    rows = math.ceil(len(shown_concepts) / ACROSS)
    figure = Figure(figsize=(PAGE, rows * _CELL + 0.2), layout="constrained")
    grid = figure.subplots(rows, ACROSS, squeeze=False).ravel()
    pieces = Pieces.of(concepts.data)
    scale = StepScale(content.steps, "log")
    for axes, concept, name in zip(
        grid, shown_concepts, line_names(shown_concepts), strict=False
    ):
        _draw(axes, concepts, concept, name, scale, pieces)
    for axes in grid[len(shown_concepts) :]:
        axes.remove()
    return figure


def _draw(
    axes: Axes,
    concepts: Concepts,
    concept: Concept,
    name: str,
    scale: StepScale,
    pieces: Pieces,
) -> None:
    arrays = concepts.arrays
    at = scale.positions(concepts.data["step"].values.astype(int))
    share = arrays.over_steps("strength")[concept.place] / concept.peak
    course = arrays.over_steps("readability")[concept.place]
    clear = np.nan_to_num(course, nan=-1.0) >= concepts.readable
    base = BASE["light"]
    axes.plot(at, share, color=base["null"], linewidth=0.7)
    axes.plot(at, np.where(clear, share, math.nan), color=base["ink"], linewidth=1.0)
    axes.set_ylim(0, 1.08)
    axes.axis("off")
    born = f", born {step_text(concept.born)}" if math.isfinite(concept.born) else ""
    axes.set_title(f"{name}{born}", loc="left", fontweight="bold")
    axes.text(
        0.5,
        -0.04,
        _context(arrays, concept.place, pieces),
        transform=axes.transAxes,
        ha="center",
        va="top",
        family="monospace",
        fontsize=0.72 * FONT,
        color=base["ink-2"],
        parse_math=False,
    )


def _context(arrays: ConceptArrays, place: tuple[int, int], pieces: Pieces) -> str:
    """Return the strongest context, its strongest token in brackets; of the last step."""
    name = next((n for n in ("context_id", "shared_context_id") if n in arrays), "")
    if not name:
        return ""
    every = np.nan_to_num(arrays.of(name, place), nan=-1).astype(int)
    tokens = every.reshape(-1, every.shape[-1])[0]
    at = middle(arrays, len(tokens))
    words = [pieces.text(int(token)) if token >= 0 else "" for token in tokens]
    before = "".join(words[:at])
    after = "".join(words[at + 1 :])
    return f"{before[-_TOKENS:]}[{words[at]}]{after[:_TOKENS]}"
