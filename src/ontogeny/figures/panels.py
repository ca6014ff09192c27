"""Small multiples: curves, heatmaps, dots beside their null models, and marks on one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import ArgumentError, check_choice
from .base import Figure


@dataclass(frozen=True)
class Band:
    """A grey band with its label: what refitting, resampling or pure chance gives."""

    lower: str
    upper: str
    label: str = ""

    @property
    def control(self) -> bool:
        """Whether it is what control runs give, and is drawn apart from other nulls."""
        return self.lower.endswith("_control_low")


@dataclass(frozen=True)
class Boundary:
    """A step at which one regime ends and the next begins, as names of variables.

    Parameters
    ----------
    step
        The boundary in training steps: without dimensions for all lines, or over the dimension
        of the lines or of the panels. NaN where there is none.
    low, high
        Ends of its interval in training steps; both or none.
    noise_ratio
        Noise after the boundary over noise before it: the noisier side is shaded (the later one
        above 1, the earlier one below 1); without it only the interval is.
    label
        Written beside the line.
    """

    step: str
    low: str | None = None
    high: str | None = None
    noise_ratio: str | None = None
    label: str = "regime boundary"

    @property
    def variables(self) -> list[str]:
        """The variables that it names."""
        names = (self.step, self.low, self.high, self.noise_ratio)
        return [name for name in names if name is not None]

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ArgumentError(
                f"low and high of the boundary {self.step!r} must be given both or not at all; "
                f"got low={self.low!r}, high={self.high!r}."
            )


@dataclass(frozen=True)
class Curves(Figure):
    """Lines over `x`, one for each label of `series`.

    `interval` names the variables of the uncertainty of every line, `band` one grey band
    (shared, or one per facet or series) that shows the null or the noise floor.
    An axis of steps is logarithmic with step 0 set apart and can be switched to linear.
    `reference` is drawn dashed in the same colours, with `reference_label` in words: a theory's
    curves over the measured ones. `boundaries` are drawn as lines with their interval over steps.
    `runs` is a dimension of several runs: the reader sees them over one another, side by side, or
    one of them as its difference from the others.
    """

    x: str = "step"
    series: str | None = "layer"
    interval: tuple[str, str] | None = None
    bands: Sequence[Band] = ()
    y_scale: str = "linear"
    reference: str | None = None
    reference_label: str = "theory"
    boundaries: Sequence[Boundary] = ()
    runs: str | None = None

    kind = "curves"
    dimensions = ("x", "series", "facet", "runs")
    parts = {"bands": Band, "boundaries": Boundary}

    def companions(self) -> Iterator[str]:
        """Give the ends of intervals and bands, and the reference."""
        yield from _ends(self)
        if self.reference is not None:
            yield self.reference

    def variables(self) -> Iterator[str | None]:
        """Give every variable that the figure draws."""
        yield from super().variables()
        for boundary in self.boundaries:
            yield from boundary.variables

    def in_steps(self) -> Iterator[str]:
        """Give the boundaries and the ends of their intervals."""
        for boundary in self.boundaries:
            yield from (
                name for name in (boundary.step, boundary.low, boundary.high) if name
            )


@dataclass(frozen=True)
class Heatmap(Figure):
    """One value for each pair of labels of `x` and `y`.

    With `square` cells are as wide as high, as in a confusion matrix. Values below `middle`, such
    as chance, are grey. A `facet` over steps shows at most 8 of them, evenly chosen, first and last
    among them.
    """

    x: str = "step"
    y: str = "layer"
    square: bool = False
    middle: float | None = None

    kind = "heatmap"
    dimensions = ("x", "y", "facet")


@dataclass(frozen=True)
class NullComparison(Figure):
    """One dot for each label of `rows`, beside the bands of its null models."""

    rows: str = "block"
    bands: Sequence[Band] = ()
    interval: tuple[str, str] | None = None

    kind = "null"
    dimensions = ("rows", "facet")
    parts = {"bands": Band}

    def companions(self) -> Iterator[str]:
        """Give the ends of intervals and bands."""
        yield from _ends(self)


def _ends(figure: Curves | NullComparison) -> Iterator[str]:
    yield from figure.interval or ()
    for band in figure.bands:
        yield from (band.lower, band.upper)


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
