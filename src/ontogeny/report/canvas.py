"""A sheet of SVG that is drawn from top to bottom, with the step axis across it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from .scales import StepScale

__all__ = ["NARROW", "WIDE", "Canvas", "ChartLayout"]


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
    legend_left: float

    @property
    def narrow(self) -> bool:
        """Whether it is the form for a phone."""
        return self.name == "narrow"

    @property
    def plot_width(self) -> float:
        """Length of the step axis."""
        return self.width - self.left - self.right


WIDE = ChartLayout("wide", 1060, 250, 128, 17, 12, 30, legend_left=250)
NARROW = ChartLayout("narrow", 380, 132, 44, 16, 10.5, 21, legend_left=0)


class Canvas:
    """SVG parts gathered so far, how far down they reach, and where steps lie."""

    def __init__(self, layout: ChartLayout, steps: tuple[int, ...]) -> None:
        self.layout = layout
        self.scale = StepScale(steps, "log")
        edges = self.scale.edges(steps)
        self.low, self.high = float(edges.min()), float(edges.max())
        self.parts: list[str] = []
        self.y = 0.0

    @property
    def hatch(self) -> str:
        """Name of the hatch pattern; each form has its own, as a hidden one cannot be used."""
        return f"hatch-{self.layout.name}"

    def x(self, places: np.ndarray | float) -> np.ndarray:
        """From places between 0 and 1 on the step axis to SVG units."""
        share = (np.asarray(places) - self.low) / (self.high - self.low)
        return self.layout.left + share * self.layout.plot_width

    def x_of_step(self, step: float) -> float:
        """Return where a step lies, kept inside the plot."""
        return float(self.x(np.clip(self.scale.positions([step])[0], self.low, self.high)))

    def add(self, part: str) -> None:
        """Append SVG."""
        self.parts.append(part)

    def path(self, style: str, shape: str, title: str = "") -> None:
        """Append a path, with words that appear on hover."""
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.add(f'<path class="{style}" d="{shape}">{inner}</path>')

    def text(self, x: float, y: float, words: str, style: str, title: str = "") -> None:
        """Append escaped text, with words that appear on hover."""
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.add(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}{inner}</text>')

    def box(self, paint: str, x: float, y: float, width: float, height: float) -> None:
        """Append a rectangle; `paint` holds its class or fill attributes."""
        self.add(
            f'<rect {paint} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
        )

    def whisker(self, low: float, y: float, at: float, high: float) -> None:
        """Append a whisker with a dot, in ink with a halo of paper: legible on every shade."""
        shape = f"M{low:.1f} {y:.1f}H{high:.1f}"
        for line, dot, radius in (("halo", "halo-dot", 3.6), ("whisker", "dot", 2.4)):
            self.add(
                f'<path class="{line}" d="{shape}"/>'
                f'<circle class="{dot}" cx="{at:.1f}" cy="{y:.1f}" r="{radius}"/>'
            )
