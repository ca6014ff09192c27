"""Clouds of words as text that flows in lines, each word as large as its weight says."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from matplotlib import ft2font
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import TextToPath

from ...words.catalogue.captions import CAPTIONS
from ...words.labels import truncate
from ..figures.words import COUNT, heaviest
from .frame import COLUMN, FONT, PAGE, TALLEST
from .view import FigureView

# Sizes in points of a word without weight and of the heaviest.
_SIZES = (5.5, 14.0)

_GAP = 4.0
_MARGIN = 6.0
_INDENT = 12.0
_HEAD = 11.0
"""Between words, around the figure, for a depth of the tree; height of a heading: in points."""

# Words of each cloud that are tried, until the figure fits on a page.
_LIMITS = (40, 30, 20, 12, 8, 5)

# Without a shaping engine matplotlib draws these scripts in the wrong order or shapes.
_SHAPED = bool(getattr(ft2font, "__libraqm_version__", ""))


@dataclass(frozen=True)
class _Cloud:
    """One cloud: its heading, depth in the tree, words with their sizes, and how many it has."""

    title: str
    depth: int
    words: list[tuple[str, float]]
    undrawn: list[str]
    count: int


@dataclass
class _Placed:
    """Where everything of a cloud lies, in points from its upper left corner."""

    cloud: _Cloud
    words: list[tuple[float, float, str, float]] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)
    height: float = 0.0


def draw_words(view: FigureView) -> Figure:
    """Return the figure."""
    clouds = _clouds(view)
    nested = view.figure.parent is not None
    columns = 1 if nested or len(clouds) == 1 else 2
    width = 72 * (PAGE if columns == 2 or nested else COLUMN)
    for limit in _LIMITS:
        placed = [
            _flow(cloud, limit, width / columns - 2 * _MARGIN) for cloud in clouds
        ]
        rows = [placed[i : i + columns] for i in range(0, len(placed), columns)]
        height = (
            sum(max(block.height for block in row) + _MARGIN for row in rows) + _MARGIN
        )
        if height <= 72 * TALLEST:
            break
    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    top = _MARGIN
    for row in rows:
        for column, block in enumerate(row):
            _draw_cloud(
                axes, view, block, _MARGIN + column * width / columns, top, nested
            )
        top += max(block.height for block in row) + _MARGIN
    return figure


def words_without_glyphs(view: FigureView) -> list[str]:
    """Return a line for every cloud with words that the picture's font cannot draw."""
    return [
        CAPTIONS["undrawn"].format(
            where=cloud.title or "the cloud", words=", ".join(cloud.undrawn)
        )
        for cloud in _clouds(view)
        if cloud.undrawn
    ]


def _clouds(view: FigureView) -> list[_Cloud]:
    return [_cloud(view, group, depth) for group, depth in view.drawable.tree]


def _cloud(view: FigureView, group: int, depth: int) -> _Cloud:
    weights, texts, count = (
        _of_group(view, name, group)
        for name in (view.figure.value, view.figure.words, COUNT)
    )
    largest = heaviest(view.drawable) or 1.0
    small, large = _SIZES
    words = [
        (str(text), small + (large - small) * (abs(float(weight)) / largest) ** 0.5)
        for text, weight in zip(texts, weights, strict=True)
        if np.isfinite(weight) and text
    ]
    title = view.labels("groups")[group] if view.dimension("groups") else ""
    if view.figure.heading:
        title = str(_of_group(view, view.figure.heading, group).item())
    return _Cloud(
        title=title,
        depth=depth,
        words=[word for word in words if _drawable(word[0])],
        undrawn=[text for text, _ in words if not _drawable(text)],
        count=int(count),
    )


def _of_group(view: FigureView, name: str, group: int) -> np.ndarray:
    groups = view.dimension("groups")
    return np.asarray(view.at(name, ("", {groups: group} if groups else {})).values)


@cache
def _drawable(text: str) -> bool:
    """Whether the font has every character, and what joins and orders them is there."""
    font = get_font(findfont("DejaVu Sans"))
    if not all(font.get_char_index(ord(character)) for character in text):
        return False
    return _SHAPED or all(
        ord(character) < 0x0590 or ord(character) > 0x1CFF for character in text
    )


def _flow(cloud: _Cloud, limit: int, room: float) -> _Placed:
    """Set words side by side in lines as high as their largest word."""
    placed = _Placed(cloud)
    indent = cloud.depth * _INDENT
    room = max(room - indent, 60.0)
    top = _HEAD if cloud.title else 2.0
    line: list[tuple[float, str, float]] = []
    x = 0.0
    for text, size in [*cloud.words[:limit], ("", 0.0)]:
        font = FontProperties(family="DejaVu Sans", size=size)
        extent = TextToPath().get_text_width_height_descent(text, font, ismath=False)
        wide = min(float(extent[0]), room) if text else 0.0
        if line and (not text or x + wide > room):
            top += 1.25 * max(height for _, _, height in line)
            placed.words += [
                (indent + offset, top, word, height) for offset, word, height in line
            ]
            line = []
            x = 0.0
        if text:
            line.append((x, truncate(text, max(int(room / size * 1.6), 4)), size))
            x += wide + _GAP
    for note in _notes(cloud, limit):
        top += FONT * 1.3
        placed.notes.append((top, note))
    placed.height = top + 3.0
    return placed


def _notes(cloud: _Cloud, limit: int) -> list[str]:
    """Say what is not there: no words, more words, words without glyphs."""
    if not cloud.words and not cloud.undrawn:
        return ["no words"]
    notes = []
    count = len(cloud.words[:limit])
    if count + len(cloud.undrawn) < cloud.count:
        notes.append(f"{count} of {cloud.count:,} words")
    if cloud.undrawn:
        notes.append(CAPTIONS["other scripts"].format(count=len(cloud.undrawn)))
    return notes


def _draw_cloud(
    axes: Axes, view: FigureView, placed: _Placed, left: float, top: float, nested: bool
) -> None:
    cloud = placed.cloud
    indent = cloud.depth * _INDENT
    if nested and cloud.depth:
        x = left + indent - 5
        axes.plot([x, x], [top, top + placed.height], color=view.base["line"])
    if cloud.title:
        title = truncate(cloud.title, 60)
        axes.text(left + indent, top + FONT, title, fontweight="bold", va="baseline")
    for x, y, word, size in placed.words:
        axes.text(left + x, top + y, word, fontsize=size, va="baseline")
    for y, note in placed.notes:
        axes.text(left + indent, top + y, note, color=view.base["ink-2"], va="baseline")
