"""Marks on one axis, several in each row: a forest plot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import check_choice
from .base import Figure


@dataclass(frozen=True)
class Marks(Figure):
    """One mark for each label of `series` in each row, with its interval as a bar.

    Parameters
    ----------
    value
        Where the marks stand, over `rows` and `series`; NaN where there is none.
    rows, series
        Dimensions of the rows, and of the marks in a row.
    interval
        Variables of the lower and the upper end.
    filled
        A variable of truth values: marks are filled where it holds, else open. All are filled if
        ``None``.
    open_label
        What an open mark means, for the legend.
    x_scale
        ``"step"``: values are training steps, on the page's step axis. ``"linear"``: any number.

    Examples
    --------
    >>> Marks("runs", "Half-change step of every run", value="half_step").series
    'run'
    """

    rows: str = "row"
    series: str | None = "run"
    interval: tuple[str, str] | None = None
    filled: str | None = None
    open_label: str = ""
    x_scale: str = "step"

    kind = "marks"
    dimensions = ("rows", "series", "facet")

    def __post_init__(self) -> None:
        check_choice("x_scale", self.x_scale, ("step", "linear"))

    def companions(self) -> Iterator[str]:
        """Give the ends of intervals."""
        yield from self.interval or ()

    def variables(self) -> Iterator[str | None]:
        """Give every variable that the figure draws."""
        yield from super().variables()
        yield self.filled

    def in_steps(self) -> Iterator[str]:
        """Give the variables that hold training steps."""
        if self.x_scale == "step":
            yield from (self.value, *self.companions())
