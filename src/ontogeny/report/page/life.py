"""The picture of the first screen as SVG: the loss over the life lines of concepts.

It has the step axis of the chart, which it is as wide as; the page's scripts move its hairline.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from ...words.catalogue import concepts as say
from ...words.content import Content
from ...words.formats import number, plural, sentence_start, step_text
from ...words.labels import truncate
from ..chart.canvas import GAP, Canvas, ChartLayout, Points, text_width, wrapped
from ..chart.draw import draw_axis, draw_clock, stretches
from ..concepts.layers import concept_address
from ..concepts.lives import (
    FEW,
    Concept,
    Concepts,
    choice_words,
    line_names,
    marks_words,
)
from ..first_screen.runs import build_first
from ..first_screen.screen import FirstScreen
from ..scales import KINDS
from ..style import STRENGTHS
from ..value_span import with_arrow

NAMES = 156.0  # room for names left of the axis, where the chart has more
_LOSS = 78.0
_ALONE = 170.0
_MOST_NAMED = 6  # runs at whose lines there is room for a name
_LINE = 13.0  # least distance of labels
LONGEST, SHORTEST = 60, 8  # letters of a name
MOST_LINES = 3  # of a name

Label = tuple[str, float, str]
"""Words at the end of a line, its last value, and their style."""


@dataclass(frozen=True)
class LifePicture:
    """The picture in each form, and what stands over it in words.

    ``names`` is the room left of the axis as a share of its length. ``head`` and ``units`` are those
    of the loss. ``legend`` are the labels of its lines, which the narrow form has no room for;
    ``is_long`` says that no form has. ``caption`` is that of the life lines.
    """

    drawings: tuple[str, ...]
    names: float
    head: str
    units: str
    legend: tuple[str, ...]
    is_long: bool
    caption: str


def life_picture(
    content: Content,
    first: FirstScreen,
    layouts: Sequence[ChartLayout],
    cards: Container[str] = (),
) -> LifePicture:
    """Return the loss with its lines and controls over the life lines of concepts.

    `layouts` are those of the chart, and `cards` the addresses of concepts that have one.
    """
    curves = build_first(content, first)
    has_loss = first.loss is not None and content.track is not None
    labels = _labels(content, curves) if has_loss else []
    span = curves["span"] if has_loss else (0.0, 1.0)
    words = [with_arrow(words, value, span) for words, value, _ in labels]
    layouts = [_own(layout) for layout in layouts]
    wide = next(layout for layout in layouts if not layout.narrow)
    concepts = first.concepts
    lines = life_lines(concepts, has_loss)
    is_long = not _has_room(wide, words)
    drawings = []
    for layout in layouts:
        canvas = Canvas(layout, content.steps, KINDS)
        if has_loss:
            spoken = f"{sentence_start(curves['title'])}: {', '.join(words)}"
            with canvas.tagged(
                "g", f'class="loss" role="img" aria-label="{escape(spoken)}"'
            ):
                told = [] if is_long or layout.narrow else labels
                _draw_loss(canvas, content, first, curves, told, span)
        if concepts is not None and lines:
            _draw_lines(canvas, content, concepts, lines, cards)
        drawings.append(_wrapped(canvas, content, first))
    title = sentence_start(curves.get("title", "")) if has_loss else ""
    units = content.track.units if content.track is not None else ""
    caption = _caption(concepts, lines) if concepts is not None else ""
    names = wide.left / wide.plot_width
    return LifePicture(
        tuple(drawings), names, title, units, tuple(words), is_long, caption
    )


def _own(layout: ChartLayout) -> ChartLayout:
    """Return a form of the chart with less room left of the same axis."""
    name = f"life-{layout.name}"
    if layout.narrow:
        return replace(layout, name=name)
    width = layout.width - layout.left + NAMES
    return replace(layout, name=name, left=NAMES, width=width)


def _has_room(layout: ChartLayout, words: Sequence[str]) -> bool:
    """Return whether words fit right of the axis, or reach into the margin by no more than a gap."""
    return layout.font * max(map(text_width, words), default=0.0) <= layout.right


def _caption(concepts: Concepts, lines: Sequence[Concept]) -> str:
    if not lines:
        every = sentence_start(plural(len(concepts.every), "concept"))
        return f"{say.NONE_NAMED.format(concepts=every)}." if concepts.every else ""
    parts = choice_words(concepts, FEW), say.SHADES, say.AFTER_NAME, marks_words(lines)
    return " ".join(filter(None, parts))


def life_lines(concepts: Concepts | None, has_loss: bool) -> tuple[Concept, ...]:
    """Return the concepts that have a line: without names none stands beside a loss."""
    if concepts is None or (has_loss and not concepts.has_names):
        return ()
    return concepts.lines


def _labels(content: Content, curves: dict[str, Any]) -> list[Label]:
    """Return guesses, the last known value of each run, and that of controls."""
    track = content.track
    assert track is not None
    labels = [(line["text"], line["level"], "") for line in curves["lines"]]
    runs = dict(zip(curves["names"], curves["runs"], strict=False))
    named = runs or {curves["of"]: track.values.tolist()}
    known = {
        name: [at for at, value in enumerate(values) if _is_known(value)]
        for name, values in named.items()
    }
    if len(named) > _MOST_NAMED:
        ends = [named[name][places[-1]] for name, places in known.items() if places]
        words = f"{len(named)} runs {number(min(ends), 0.1)}–{number(max(ends), 0.1)}"
        labels.append((words, (min(ends) + max(ends)) / 2, "name"))
    else:
        for name, places in known.items():
            last = named[name][places[-1]]
            is_early = places[-1] < len(track.steps) - 1
            step = step_text(float(track.steps[places[-1]]))
            early = content.voice.fill(f" at {{step}} {step}") if is_early else ""
            words = f"{truncate(name, 18)} {number(last, 0.1)}{early}"
            labels.append((words, last, "name"))
    if curves["control"] is not None:
        ends = [[v for v in side if v is not None] for side in curves["control"]]
        if all(ends):
            low, high = (number(side[-1], 0.1) for side in ends)
            spread = low if low == high else f"{low}–{high}"
            middle = (ends[0][-1] + ends[1][-1]) / 2
            labels.append((f"{curves['control_name']} {spread}", middle, ""))
    return labels


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _draw_loss(
    canvas: Canvas,
    content: Content,
    first: FirstScreen,
    curves: dict[str, Any],
    labels: Sequence[Label],
    span: tuple[float, float],
) -> None:
    track = content.track
    assert track is not None
    layout = canvas.layout
    top = canvas.y + 4
    height = _LOSS if life_lines(first.concepts, True) else _ALONE
    right = layout.left + layout.plot_width

    def heights(values: Sequence[float | None]) -> np.ndarray:
        known = np.array([math.nan if v is None else v for v in values], dtype=float)
        share = (span[1] - known) / ((span[1] - span[0]) or 1.0)
        return top + height * np.clip(share, 0, 1)

    def curve() -> None:
        xs = canvas.x(canvas.scale.positions(track.steps))
        if curves["control"] is not None:
            low, high = map(heights, curves["control"])
            known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
            outline = [(xs[i], high[i]) for i in known]
            outline += [(xs[i], low[i]) for i in known[::-1]]
            if outline:
                canvas.areas("control", [outline])
        style = "run" if curves["names"] else "each"
        for values in curves["runs"]:
            canvas.lines(style, _joined(xs, heights(values)))
        if not curves["names"]:
            canvas.lines("run", stretches(xs, heights(track.values.tolist())))

    for line in curves["lines"]:
        if span[0] <= line["level"] <= span[1]:
            y = float(heights([line["level"]])[0])
            canvas.lines("reference", [[(layout.left, y), (right, y)]])
    canvas.on_axes(curve)
    section = content.track_node.id if content.track_node else ""
    _label_ends(canvas, labels, span, heights, (top, top + height), section)
    canvas.box("hit", layout.left, top, layout.plot_width, height)
    canvas.y = top + height + 6


def _joined(xs: np.ndarray, ys: np.ndarray) -> list[Points]:
    """Return one line through the values that are known: runs may have steps of their own."""
    known = np.flatnonzero(np.isfinite(ys))
    return [[(float(xs[i]), float(ys[i])) for i in known]] if len(known) else []


def _label_ends(
    canvas: Canvas,
    labels: Sequence[Label],
    span: tuple[float, float],
    heights: Any,
    ends: tuple[float, float],
    section: str,
) -> None:
    """Write labels at the ends of their lines, moved apart where they would overlap.

    They lead to the section that says what the lines are.
    """
    sorted_labels = sorted(labels, key=lambda label: -label[1])
    places = [float(heights([value])[0]) for _, value, _ in sorted_labels]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _LINE)
    most = ends[1] + 2
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], most)
        most = places[i] - _LINE
    layout = canvas.layout
    end = layout.left + layout.plot_width
    with canvas.leading(f'href="#{section}"'):
        if labels:
            canvas.box("hit", end + 4, ends[0], layout.right - 4, ends[1] - ends[0])
        for (words, value, style), y in zip(sorted_labels, places, strict=True):
            canvas.text(end + 8, y + 4, with_arrow(words, value, span), style)


def _draw_lines(
    canvas: Canvas,
    content: Content,
    concepts: Concepts,
    lines: Sequence[Concept],
    cards: Container[str],
) -> None:
    """Draw a row for each concept, which leads to its card."""
    head = say.LIFE_LINES if concepts.has_names else say.LIFE_LINES_UNNAMED
    canvas.text(0, canvas.y + 14, head, "head halo")
    canvas.y += 22
    words = [concept.life for concept in lines]
    if not (canvas.layout.narrow or _has_room(canvas.layout, words)):
        words = list(map(_brief, lines))
    last = canvas.x_of_step(content.steps[-1])
    names = _names(canvas.layout, lines, words, last)
    for concept, name, said in zip(lines, names, words, strict=True):
        spoken = f"{concept.title}, {concept.short_layer}: {concept.life}"
        address = concept_address(concepts.node.path, concept)
        link = f'href="#{escape(address)}"' if address in cards else ""
        group = content.groups.of(concept.layer)
        attributes = f'{link} data-line="{escape(address)}" data-group="{group}"'
        with canvas.tagged("a", f'{attributes} aria-label="{escape(spoken)}"'):
            _draw_line(canvas, concepts, concept, name, said)
    canvas.y += 2


def _names(
    layout: ChartLayout, lines: Sequence[Concept], words: Sequence[str], last: float
) -> list[list[str]]:
    """Return names on as many lines as they need, cut only where `MOST_LINES` have no room.

    On a phone names stand over their cells, and what is said of them behind, before the `last` step.
    """
    cuts = [line_names(lines, most) for most in range(LONGEST, SHORTEST, -1)]
    found = []
    for of_one, said in zip(zip(*cuts, strict=True), words, strict=True):
        room = layout.left - GAP
        if layout.narrow:
            room = last - 2 * GAP - layout.font * text_width(said)
        parts = (wrapped(each, room / layout.font, MOST_LINES) for each in of_one)
        found.append(next(filter(None, parts), [of_one[-1]]))
    return found


def _brief(concept: Concept) -> str:
    """Return what there is room for beside a long axis; the interval stays in the card."""
    if math.isfinite(concept.born):
        return step_text(concept.born)
    return say.BRIEF.get(concept.course, say.BRIEF_OTHERWISE)


def _draw_line(
    canvas: Canvas,
    concepts: Concepts,
    concept: Concept,
    names: Sequence[str],
    words: str,
) -> None:
    layout = canvas.layout
    top = canvas.y
    line = 1.25 * layout.font
    over = line * len(names) if layout.narrow else 0.0
    height = over + 20.0 if layout.narrow else 24.0 + layout.font * (len(names) - 1)
    middle = top + over + (height - over) / 2
    canvas.box("hit", 0, top, layout.width, height)
    for i, part in enumerate(names):
        if layout.narrow:
            canvas.text(0, top + line * (i + 1) - 2, part, "name")
        else:
            y = middle + 4 + (i - (len(names) - 1) / 2) * layout.font
            canvas.text(layout.left - 10, y, part, "name end")

    def cells() -> None:
        _draw_cells(canvas, concepts, concept, middle - 8)
        if math.isfinite(concept.born):
            ends = [
                end if math.isfinite(end) else concept.born
                for end in (concept.after, concept.before)
            ]
            low, high, at = map(canvas.x_of_step, (*ends, concept.born))
            canvas.whisker(low, middle, at, high)

    canvas.on_axes(cells)
    if layout.narrow:
        behind = layout.font * text_width(names[-1]) + GAP
        canvas.text(behind, top + over - 2, words, "")
    else:
        canvas.text(layout.left + layout.plot_width + 8, middle + 4, words, "")
    canvas.y = top + height


def _draw_cells(
    canvas: Canvas, concepts: Concepts, concept: Concept, top: float
) -> None:
    """Draw a cell for each step, tinted by the share of the peak or hatched."""
    strength, course = (
        concepts.arrays.over_steps(name)[concept.place]
        for name in ("strength", "readability")
    )
    steps = concepts.data["step"].values.astype(int)
    edges = np.maximum(canvas.x(canvas.scale.edges(steps)), canvas.layout.left)
    shapes: dict[int | str, list[list[float]]] = {}
    before: int | str | None = None
    for share, part, (left, right) in zip(
        strength / concept.peak, course, edges.tolist(), strict=True
    ):
        if not math.isfinite(share):
            before = None
            continue
        level = round(min(max(float(share), 0.0), 1.0) * STRENGTHS)
        key = level if part >= concepts.readable else "hatched"
        boxes = shapes.setdefault(key, [])
        if key == before and left - boxes[-1][1] < 0.5:
            boxes[-1][1] = right
        else:
            boxes.append([left, right])
        before = key
    for key, boxes in shapes.items():
        outlines = [
            [(left, top), (right, top), (right, top + 16), (left, top + 16)]
            for left, right in boxes
        ]
        canvas.areas("hatched" if key == "hatched" else f"shade s{key}", outlines)


def _wrapped(canvas: Canvas, content: Content, first: FirstScreen) -> str:
    layout = canvas.layout
    bottom = canvas.y + 4
    with canvas.tagged("g", 'aria-hidden="true"'):
        canvas.on_axes(lambda: draw_axis(canvas))
        draw_clock(canvas, content.voice.clock)
    now = f'<line class="now" x1="0" x2="0" y1="0" y2="{bottom:.1f}"/>'
    plot = layout.plot_width
    size = f"{layout.width:g} {math.ceil(canvas.y + 4)}"
    # Shares of the step axis: how wide the picture is, and how much of it stands left of the axis.
    shares = f"--wide:{layout.width / plot:.4f};--left:{layout.left / plot:.4f}"
    return (
        f'<svg class="{layout.name}" viewBox="0 0 {size}" style="{shares}" role="group" '
        f'data-left="{layout.left:g}" data-width="{plot:g}" font-size="{layout.font}" '
        f'aria-label="{escape(first.heading)}">{canvas.svg}{now}</svg>'
    )
