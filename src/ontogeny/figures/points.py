"""Points in a plane or in space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import ArgumentError, check_choice
from .base import Figure


@dataclass(frozen=True)
class Scatter(Figure):
    """Points: one for each label of the dimension or dimensions `points`.

    Parameters
    ----------
    x, y, z
        Variables over `points`, and over `facet` where there is one. With `z` the points lie in
        space: the three axes share one unit length, and the reader turns the picture.
    points
        Dimension or dimensions whose labels, or pairs of labels, are points.
    colour
        A variable over `points`, or one of the dimensions: steps and numbers have a colour
        scale, texts one colour each. ``None`` draws all alike.
    label
        Variable of texts shown on hover, and beside the points where they are few; the labels of
        `points` if ``None``.
    x_scale, y_scale
        ``"linear"`` or ``"log"``; without meaning in space.

    Above 3,000 points in all panels, that many are drawn, chosen at random with a fixed seed, and
    the figure says so. Points without a value are left out and counted.

    Examples
    --------
    >>> Scatter("map", "Words in a plane", x="first", y="second", points="word").kind
    'scatter'
    """

    value: str = ""
    x: str = ""
    y: str = ""
    z: str | None = None
    points: str | Sequence[str] = "point"
    colour: str | None = None
    label: str | None = None
    x_scale: str = "linear"
    y_scale: str = "linear"

    kind = "scatter"

    def __post_init__(self) -> None:
        if not (self.x and self.y):
            raise ArgumentError(
                f"x and y of the scatter {self.id!r} must name variables."
            )
        check_choice("x_scale", self.x_scale, ("linear", "log"))
        check_choice("y_scale", self.y_scale, ("linear", "log"))

    def variables(self) -> Iterator[str | None]:
        """Give every variable that the figure draws; `colour` may be a dimension."""
        yield from (self.x, self.y, self.z, self.colour, self.label)

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from [self.points] if isinstance(self.points, str) else self.points
