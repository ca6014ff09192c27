"""A sheet of shapes and texts that is filled from top to bottom, with the step axis across it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from ..scales import KINDS, StepScale

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class ChartLayout:
    """Sizes in SVG units of one form of the chart: width, room left and right of the step axis."""

    name: str
    width: float
    left: float
    right: float
    row: float
    font: float
    label_characters: int

    @property
    def narrow(self) -> bool:
        """Whether it is the form for a phone."""
        return self.name.endswith("narrow")

    @property
    def plot_width(self) -> float:
        """Length of the step axis."""
        return self.width - self.left - self.right


WIDE = ChartLayout("wide", 1060, 320, 142, 17, 12, 44)
NARROW = ChartLayout("narrow", 380, 132, 56, 16, 10.5, 21)

# Widths as parts of a font's size, of DejaVu Sans, the broadest that browsers usually take.
_WIDTHS = {
    **dict.fromkeys("fijlrtI", 0.35),
    **dict.fromkeys("mwMW", 0.95),
    **dict.fromkeys(" \N{NO-BREAK SPACE},.·:;'|", 0.33),
    **dict.fromkeys("→…—+", 0.95),
    **dict.fromkeys("0123456789", 0.64),
}
_LETTER = 0.62
_CAPITAL = 0.71
_SIGN = 0.46
_JOIN = "\N{NO-BREAK SPACE}"


def fitted(
    layout: ChartLayout, numbers: Sequence[str], ends: Sequence[str] = ()
) -> ChartLayout:
    """Return the form with room right of the axis for the longest of `numbers`, behind `ends`.

    Examples
    --------
    >>> (
    ...     fitted(WIDE, ["43 (40–48)"]).right,
    ...     fitted(WIDE, ["113,368 (111,024–115,998)"]).right,
    ... )
    (142, 187)
    """
    widths = [max(map(text_width, texts), default=0.0) for texts in (numbers, ends)]
    room = 2 * GAP * sum(width > 0 for width in widths)
    width = room + layout.font * sum(widths)
    return replace(layout, right=max(layout.right, math.ceil(width)))


def text_width(text: str) -> float:
    """Return about how wide a text is, in parts of its size.

    Examples
    --------
    >>> round(text_width("token frequencies 6.04"), 1)
    11.8
    """
    return sum(map(_width_of, text))


def wrapped(text: str, room: float, most: int) -> list[str]:
    """Return a text on at most so many lines of a width; nothing if these have no room for it.

    No line begins with a dot, and what stands behind the last one stays with the word before.

    Examples
    --------
    >>> wrapped("after a · b · L2", 5, 2)
    ['after a ·', 'b · L2']
    >>> wrapped("after a · b · L2", 3, 2)
    []
    """
    dot = f"{_JOIN}·"
    start, last, end = text.replace(" ·", dot).rpartition(f"{dot} ")
    lines = [""]
    for word in f"{start}{last.rstrip(' ')}{_JOIN if last else ''}{end}".split(" "):
        longer = f"{lines[-1]} {word}".lstrip(" ")
        if lines[-1] and text_width(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    fits = len(lines) <= most and max(map(text_width, lines)) <= room
    return [line.replace(_JOIN, " ") for line in lines] if fits else []


def _width_of(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if character.isupper():
        return _CAPITAL
    return _LETTER if character.isalpha() else _SIGN


GAP = 8  # between the step axis and the values right of it


@dataclass(frozen=True)
class Mark:
    """A shape of some lines, a text, or a dot where there is a `radius`.

    ``style`` holds the classes of the style sheet, ``within`` those of the row that it stands in.
    ``title`` appears on hover.
    """

    style: str
    lines: Sequence[Points]
    closed: bool = False
    words: str | None = None
    radius: float = 0.0
    title: str = ""
    within: str = ""

    @property
    def hatched(self) -> bool:
        """Whether it is filled with the hatch pattern."""
        return self.style in ("hatched", "frame")

    def svg(self, hatch: str) -> str:
        """Return the mark as an SVG element; `hatch` names the hatch pattern."""
        x, y = self.lines[0][0]
        inner = f"<title>{escape(self.title)}</title>" if self.title else ""
        if self.words is not None:
            place = f'x="{x:.1f}" y="{y:.1f}"'
            return (
                f'<text class="{self.style}" {place}>{escape(self.words)}{inner}</text>'
            )
        if self.radius:
            return f'<circle class="{self.style}" cx="{x:.1f}" cy="{y:.1f}" r="{self.radius}"/>'
        end = "z" if self.closed else ""
        shape = "".join(_path(line) + end for line in self.lines)
        fill = f' fill="url(#{hatch})"' if self.hatched else ""
        return f'<path class="{self.style}"{fill} d="{shape}">{inner}</path>'


def _path(line: Points) -> str:
    """Return a line as SVG path commands, the shorter ones where it is level or upright."""
    (left, top), *rest = ((f"{x:.1f}", f"{y:.1f}") for x, y in line)
    path = f"M{left} {top}"
    for x, y in rest:
        if y == top:
            path += f"H{x}"
        elif x == left:
            path += f"V{y}"
        else:
            path += f"L{x} {y}"
        left = x
        top = y
    return path


class Canvas:
    """Marks gathered so far, how far down they reach, and where steps lie.

    ``parts`` also holds tags that only the page needs, as text. The page has all kinds of step axis
    and all views of the rows and shows one of each; a drawing for elsewhere has one. `fill` fills
    the marks of texts (`ontogeny.words.voice`).
    """

    def __init__(
        self,
        layout: ChartLayout,
        steps: tuple[int, ...],
        kinds: Sequence[str] = KINDS[:1],
        views: Sequence[str] = ("cells",),
        fill: Callable[[str], str] = str,
    ) -> None:
        self.layout = layout
        self.fill = fill
        self.views = tuple(views)
        self.scales = [StepScale(steps, kind) for kind in kinds]
        self.scale = self.scales[0]
        self.parts: list[Mark | str] = []
        self.within = ""
        self.y = 0.0

    @property
    def svg(self) -> str:
        """All parts as SVG; each form has its own hatch pattern, as a hidden one cannot be used."""
        hatch = f"hatch-{self.layout.name}"
        pattern = (
            f'<defs><pattern id="{hatch}" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path class="hatch-line" d="M0 0V5"/></pattern></defs>'
        )
        return pattern + "".join(
            p if isinstance(p, str) else p.svg(hatch) for p in self.parts
        )

    @property
    def low(self) -> float:
        """The first place of the step axis."""
        return self.scale.span[0]

    @property
    def high(self) -> float:
        """The last place of the step axis."""
        return self.scale.span[1]

    @contextmanager
    def tagged(self, tag: str, attributes: str) -> Iterator[None]:
        """Put what is appended meanwhile into an element."""
        self.parts.append(f"<{tag} {attributes}>")
        yield
        self.parts.append(f"</{tag}>")

    def leading(self, to: str) -> AbstractContextManager[None]:
        """Put what is appended meanwhile into a link of the page, which is no stop of the tab key."""
        return self.tagged("a", f'{to} tabindex="-1"') if self.linked else nullcontext()

    def on_axes(self, draw: Callable[[], None]) -> None:
        """Draw what lies on the step axis; the page has it on every kind of axis and shows one."""
        if not self.linked:
            draw()
            return
        y = self.y
        for scale in self.scales:
            self.scale = scale
            self.y = y
            with self.tagged("g", f'class="on-{scale.kind}"'):
                draw()
        self.scale = self.scales[0]

    @property
    def linked(self) -> bool:
        """Whether it is for the page, which shows what is chosen there."""
        return len(self.scales) > 1

    def behind(self, place: int, draw: Callable[[], None]) -> None:
        """Draw under the parts from `place` on."""
        count = len(self.parts)
        draw()
        self.parts[place:] = self.parts[count:] + self.parts[place:count]

    def in_view(self, view: str, draw: Callable[[], None]) -> None:
        """Draw what only one view of the rows has."""
        if view not in self.views:
            return
        with (
            self.tagged("g", f'class="in-{view}"')
            if len(self.views) > 1
            else nullcontext()
        ):
            draw()

    def x(self, places: np.ndarray | float) -> np.ndarray:
        """From places between 0 and 1 on the step axis to SVG units."""
        share = (np.asarray(places) - self.low) / (self.high - self.low)
        return self.layout.left + share * self.layout.plot_width

    def x_of_step(self, step: float) -> float:
        """Return where a step lies, kept inside the plot."""
        return float(
            self.x(np.clip(self.scale.positions([step])[0], self.low, self.high))
        )

    def lines(self, style: str, lines: Sequence[Points], title: str = "") -> None:
        """Append lines."""
        self.parts.append(
            Mark(style, lines, title=self.fill(title), within=self.within)
        )

    def areas(self, style: str, outlines: Sequence[Points], title: str = "") -> None:
        """Append closed areas."""
        self.parts.append(
            Mark(style, outlines, True, title=self.fill(title), within=self.within)
        )

    def box(self, style: str, x: float, y: float, width: float, height: float) -> None:
        """Append a rectangle."""
        right = x + width
        bottom = y + height
        self.areas(style, [[(x, y), (right, y), (right, bottom), (x, bottom)]])

    def text(self, x: float, y: float, words: str, style: str, title: str = "") -> None:
        """Append text, with words that appear on hover."""
        words = self.fill(words)
        title = self.fill(title)
        self.parts.append(
            Mark(style, [[(x, y)]], words=words, title=title, within=self.within)
        )

    def whisker(
        self,
        low: float,
        y: float,
        at: float,
        high: float,
        dot: str = "dot",
        halo: bool = True,
    ) -> None:
        """Append a whisker with a dot, in ink with a halo of paper: legible on every shade."""
        for line, point, radius in (("halo", "halo-dot", 3.6), ("whisker", dot, 2.4))[
            not halo :
        ]:
            self.lines(line, [[(low, y), (high, y)]])
            self.parts.append(
                Mark(point, [[(at, y)]], radius=radius, within=self.within)
            )

    def dot(self, style: str, x: float, y: float) -> None:
        """Append a dot."""
        self.parts.append(Mark(style, [[(x, y)]], radius=2.4, within=self.within))

    def open_whisker(self, y: float, places: Sequence[float]) -> None:
        """Append open dots on a thin line, as controls are marked beside the run itself."""
        ends = [(min(places), y), (max(places), y)]
        for line in ("halo", "control-whisker"):
            self.lines(line, [ends])
        for x in places:
            self.parts.append(
                Mark("control-dot", [[(x, y)]], radius=1.9, within=self.within)
            )
