"""Small multiples on a page of a paper: panels with shared axes, the step axis and its marks."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter, MaxNLocator

from ...words.labels import truncate
from ..colours import BASE
from ..scales import StepScale, pick_ticks
from .view import FigureView

FONT = 7.0  # size of text in points, as journals ask for in figures

_DOTS_PER_INCH = 300
_BACKENDS = {"pdf": "pdf", "svg": "svg", "png": "agg"}
# Without dates, versions of programs and random names, equal figures are equal files.
_NO_ORIGIN: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


class AuditMarks(Line2D):
    """Triangles at the steps of findings of the audit, by which legends find them."""


@contextmanager
def style() -> Iterator[None]:
    """Draw with this library's settings alone and give the reader's settings back afterwards."""
    base = BASE["light"]
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes in PDF and PNG; it is whole in
        # SVG, in the captions and in the data.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        matplotlib.rcdefaults()
        path = resources.files("ontogeny.report").joinpath("static/paper.mplstyle")
        with resources.as_file(path) as file:
            matplotlib.rc_file(file)
        matplotlib.rc("font", size=FONT)
        matplotlib.rc("text", color=base["ink"])
        matplotlib.rc("axes", labelcolor=base["ink"], edgecolor=base["ink-2"])
        matplotlib.rc("xtick", color=base["ink-2"])
        matplotlib.rc("ytick", color=base["ink-2"])
        matplotlib.rc("grid", color=base["line"])
        yield


def save(
    draw: Callable[[], Figure],
    stem: Path,
    kinds: Sequence[str],
    title: str,
    caption: str,
) -> list[Path]:
    """Write what `draw` returns in each format, with title and caption inside; return the files."""
    paths = [stem.with_suffix(f".{kind}") for kind in kinds]
    with style():
        figure = draw()
        for kind, path in zip(kinds, paths, strict=True):
            path.write_bytes(encoded(figure, kind, title, caption))
    return paths


def fix_layout(figure: Figure) -> None:
    """Lay a figure out for good: every further drawing would move its parts a little."""
    for _ in range(2):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def encoded(
    figure: Figure,
    kind: str,
    title: str,
    caption: str,
    dots_per_inch: int = _DOTS_PER_INCH,
) -> bytes:
    """Return `figure` as the content of a file of a format, with title and caption inside."""
    words = "Subject" if kind == "pdf" else "Description"
    metadata: dict[str, Any] = {"Title": title, **_NO_ORIGIN[kind]}
    if caption:
        metadata[words] = caption
    file = io.BytesIO()
    figure.savefig(
        file, format=kind, backend=_BACKENDS[kind], dpi=dots_per_inch, metadata=metadata
    )
    return file.getvalue()


COLUMN = 3.35
PAGE = 6.9
TALLEST = 9.0
"""Widths of one and of two columns and the height of a page, in inches."""

# Height of legend, tick labels and the name of the axis, in inches.
_AROUND = 0.85

# Where the axis is broken after step 0, half-way to the first later step.
_BREAK = 0.045


class Frame:
    """A figure with one axes for each panel, at most `across` of them in a row.

    Where a view has axes of its caller, these are the only ones.
    """

    figure: Any

    def __init__(self, view: FigureView, panel_height: float, across: int) -> None:
        panels = view.panels
        self.given = view.ax is not None
        if view.ax is not None:
            self._take(view.ax)
            return
        count = len(panels)
        self.rows = math.ceil(count / across)
        self.columns = math.ceil(count / self.rows)
        self.width = PAGE if count > 1 else COLUMN
        titled = 0.16 if count > 1 else 0.0
        self.height = min(self.rows * (panel_height + titled) + _AROUND, TALLEST)
        self.panel_height = (self.height - _AROUND) / self.rows - titled
        self.panel_width = (self.width - 1.0) / self.columns - 0.1
        self.figure = Figure(figsize=(self.width, self.height), layout="constrained")
        grid = self.figure.subplots(
            self.rows, self.columns, sharex=True, sharey=True, squeeze=False
        ).ravel()
        self.axes = list(grid[:count])
        for spare in grid[count:]:
            spare.remove()
        for i, (axes, (title, _)) in enumerate(zip(self.axes, panels, strict=True)):
            axes.tick_params(labelbottom=i + self.columns >= count)
            if count > 1:
                axes.set_title(
                    truncate(title, max(int(self.panel_width * 72 / FONT / 0.6), 6))
                )

    def _take(self, axes: Axes) -> None:
        """Draw on axes of the caller, as large as they are."""
        self.axes = [axes]
        self.figure = axes.figure
        self.rows = self.columns = 1
        size = axes.get_window_extent().transformed(
            self.figure.dpi_scale_trans.inverted()
        )
        self.width = size.width
        self.height = size.height
        self.panel_width = size.width
        self.panel_height = size.height

    @property
    def last_in_rows(self) -> list[int]:
        """Panels with nothing at their right."""
        count = len(self.axes)
        return [
            i
            for i in range(count)
            if i % self.columns == self.columns - 1 or i == count - 1
        ]

    def name_axes(self, x: str, y: str) -> None:
        """Name the axes once for all panels; one panel has its names beside it."""
        inch = 72 / FONT / 0.58
        high = int(self.panel_height * self.rows * inch)
        x = truncate(x, int(0.85 * self.width * inch))
        y = fill(truncate(y, 2 * high), high)
        if len(self.axes) == 1:
            self.axes[0].set_xlabel(x)
            self.axes[0].set_ylabel(y)
            return
        self.figure.supxlabel(x, fontsize=FONT)
        self.figure.supylabel(y, fontsize=FONT)

    def legend(self, handles: Sequence[Any]) -> None:
        """Explain grey bands and marks over the panels."""
        if not handles:
            return
        longest = max(len(str(h.get_label())) for h in handles)
        if self.given:
            self.axes[0].legend(handles=handles, frameon=False, handlelength=1.4)
            return
        fitting = int(self.width / (longest * FONT * 0.5 / 72 + 0.45))
        columns = max(min(fitting, len(handles)), 1)
        lines = -(-len(handles) // columns) - 1  # the first has room
        self.figure.set_figheight(
            self.figure.get_figheight() + 1.45 * FONT / 72 * lines
        )
        self.figure.legend(
            handles=handles,
            loc="outside upper left",
            ncols=columns,
            frameon=False,
            handlelength=2,
            borderaxespad=0.2,
            columnspacing=1.4,
        )


def set_dimension_axis(
    axes: Axes,
    view: FigureView,
    use: str,
    length: float,
    letter: str = "x",
    cells: bool = False,
) -> None:
    """Set the ticks of one dimension on an axis of `length` inches; mark steps that stand out.

    `cells` says that labels lie side by side, as in a heatmap, also where they are numbers.
    """
    axis = view.axis(use)
    target = axes.xaxis if letter == "x" else axes.yaxis
    if axis.kind == "number" and not cells:
        target.set_major_locator(MaxNLocator(max(int(length * 2), 2)))
        if letter == "x" and axis.values[0] > axis.values[-1]:
            axes.xaxis.set_inverted(True)  # a loss falls while time goes on
        return
    if axis.kind == "step":
        ticks = view.scale.ticks()
        character = FONT * 0.62 if letter == "x" else FONT * 0.5
        labelled = pick_ticks(ticks, length * 72, character)
        target.set_ticks([t.position for t in labelled], [t.label for t in labelled])
        positions = {t.position for t in labelled}
        target.set_ticks(
            [t.position for t in ticks if t.position not in positions], minor=True
        )
        if letter == "x":
            axes.set_xlim(-0.03, 1.03)
            _mark_steps(axes, view)
        return
    names = [truncate(name, 16) for name in view.labels(use)]
    room = max(map(len, names)) * 0.6 + 1 if letter == "x" else 1.25
    every = math.ceil(len(names) * room * FONT / 72 / length)
    target.set_ticks(range(0, len(names), every), names[::every])


def _mark_steps(axes: Axes, view: FigureView) -> None:
    """Draw regime boundaries, the audit's findings, and the break after step 0."""
    scale = view.scale
    across = axes.get_xaxis_transform()
    for place in scale.positions([mark.step for mark in view.content.boundaries]):
        axes.axvline(
            float(place), color=view.base["ink-3"], linewidth=0.6, linestyle=":"
        )
    found = chain.from_iterable(f.steps for f in view.content.findings)
    steps = sorted(set(scale.steps).intersection(found))
    if steps:
        marks = AuditMarks(
            scale.positions(steps),
            np.full(len(steps), 0.02),
            linestyle="none",
            marker="^",
            transform=across,
            zorder=4,
            color=view.base["warning"],
            markersize=4,
            markeredgewidth=0,
            clip_on=False,
            label="audit finding",
        )
        axes.add_line(marks)
    if scale.breaks_at_zero:
        axes.plot(
            [_BREAK - 0.008, _BREAK + 0.008],
            [0, 0],
            transform=across,
            clip_on=False,
            zorder=5,
            color=view.base["paper"],
            linewidth=1.6,
            solid_capstyle="butt",
            marker=(2, 0, -25),
            markersize=5,
            markeredgecolor=view.base["ink-2"],
            markeredgewidth=0.6,
        )


def set_step_ticks(axes: Axes, scale: StepScale, length: float) -> None:
    """Label the steps that fit on an axis of `length` points from left to right."""
    labelled = pick_ticks(scale.ticks(), length, FONT * 0.62)
    axes.set_xticks(
        [tick.position for tick in labelled], [tick.label for tick in labelled]
    )
    axes.set_xlim(-0.03, 1.03)


def hatch(axes: Axes, boxes: Sequence[Any], colour: str) -> None:
    """Hatch cells whose value is not known."""
    cells = PolyCollection(
        boxes, facecolors="none", edgecolors=colour, linewidths=0, hatch="//////"
    )
    axes.add_collection(cells, autolim=False)


def colour_bar(
    frame: Any, colours: Any, pad: float = 0.02, fraction: float = 0.05
) -> Any:
    """Put a bar of colours beside all panels."""
    bar = frame.figure.colorbar(
        colours, ax=frame.axes, aspect=30, pad=pad, fraction=fraction
    )
    bar.outline.set_visible(False)
    return bar


def set_log_ticks(axes: Axes, letter: str = "y") -> None:
    """Make an axis logarithmic, its numbers plain text."""
    target = axes.xaxis if letter == "x" else axes.yaxis
    (axes.set_xscale if letter == "x" else axes.set_yscale)("log")
    target.set_major_formatter(LogFormatter())
    target.set_minor_formatter(LogFormatter())
