"""Figure specifications: what to draw, as plain data that any renderer can follow.

An observable's ``summarise`` attaches these to its dataset; the report renders them by ``kind``
and needs neither the observable's package nor a model (decision 15). Every name in a specification
is a variable or a dimension of the dataset that it is attached to.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import xarray as xr

from .errors import ArgumentError, check_choice

__all__ = [
    "Band",
    "Boundary",
    "Column",
    "Curves",
    "Figure",
    "Footer",
    "Heatmap",
    "NullComparison",
    "Pair",
    "Scatter",
    "Section",
    "Table",
    "Words",
    "attach",
    "show_token",
]

ROLES = ("development", "motion", "track", "regimes")


@dataclass(frozen=True)
class Band:
    """A grey band with its label: what refitting, resampling or pure chance gives."""

    lower: str
    upper: str
    label: str


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

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ArgumentError(
                f"low and high of the boundary {self.step!r} must be given both or not at all; "
                f"got low={self.low!r}, high={self.high!r}."
            )


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    value
        The variable: numbers, truth values or texts over the table's rows.
    label
        Head of the column; the variable's ``long_name`` if empty. Its ``units`` follow.
    sd
        Standard deviation or standard error, written behind the value in brackets; it sets how
        many digits are written.
    interval
        Lower and upper end, written behind the value; sets the digits where there is no `sd`.
    over
        Head above neighbouring columns that share it.
    """

    value: str
    label: str = ""
    sd: str | None = None
    interval: tuple[str, str] | None = None
    over: str = ""


@dataclass(frozen=True)
class Pair:
    """Two columns, by their values' names, of whose cells the better one is shaded in each row."""

    first: str
    second: str
    better: str = "higher"

    def __post_init__(self) -> None:
        check_choice("better", self.better, ("higher", "lower"))


@dataclass(frozen=True)
class Footer:
    """One line under a table: variables without row, by the column that they stand in.

    ``Footer("sum of differences", {"late_mean": "difference"})`` writes the variable
    ``difference`` under the column whose value is ``late_mean``.
    """

    label: str
    cells: Mapping[str, str]


@dataclass(frozen=True)
class Figure:
    """What all kinds share; use a subclass.

    Parameters
    ----------
    id
        Short name, unique within its dataset; file names and links are made of it.
    title
        One line over the figure.
    caption
        One or two sentences under it: what is seen, what to be careful about.
    value
        The variable drawn.
    relative
        The same variable as a fraction of a stated norm; drawn by default where given.
    relative_label
        What it is a fraction of.
    facet
        Dimension split into small multiples with shared axes.
    select
        Labels chosen along further dimensions: ``{"distance": "procrustes"}``.
    """

    id: str
    title: str
    value: str
    caption: str = ""
    relative: str | None = None
    relative_label: str = ""
    facet: str | None = None
    select: Mapping[str, Any] = field(default_factory=dict)

    kind = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as JSON-ready data with its ``kind``."""
        return {"kind": self.kind, **asdict(self)}

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names, ``None`` for what it leaves."""
        yield from (self.value or None, self.relative, self.facet, *self.select)


@dataclass(frozen=True)
class Curves(Figure):
    """Lines over `x`, one for each label of `series`.

    `interval` names the variables of the uncertainty of every line, `band` one grey band
    (shared, or one per facet or series) that shows the null or the noise floor.
    `x_scale` ``"step"`` is logarithmic with step 0 set apart and can be switched to linear.
    `reference` is drawn dashed in the same colours, with `reference_label` in words: a theory's
    curves over the measured ones. `boundaries` are drawn as lines with their interval over steps.
    """

    x: str = "step"
    series: str | None = "layer"
    interval: tuple[str, str] | None = None
    bands: Sequence[Band] = ()
    x_scale: str = "step"
    y_scale: str = "linear"
    reference: str | None = None
    reference_label: str = "theory"
    boundaries: Sequence[Boundary] = ()

    kind = "curves"

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from (self.x, self.series, self.reference, *(self.interval or ()))
        yield from (name for band in self.bands for name in (band.lower, band.upper))
        for each in self.boundaries:
            yield from (each.step, each.low, each.high, each.noise_ratio)


@dataclass(frozen=True)
class Heatmap(Figure):
    """One value for each pair of labels of `x` and `y`.

    With `square` cells are as wide as high, as in a confusion matrix. A `facet` over steps shows
    at most 8 of them, evenly chosen, first and last among them.
    """

    x: str = "step"
    y: str = "layer"
    series: str | None = None
    square: bool = False

    kind = "heatmap"

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from (self.x, self.y, self.series)


@dataclass(frozen=True)
class NullComparison(Figure):
    """One dot for each label of `rows`, beside the bands of its null models."""

    rows: str = "block"
    bands: Sequence[Band] = ()
    interval: tuple[str, str] | None = None

    kind = "null"

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from (self.rows, *(self.interval or ()))
        yield from (name for band in self.bands for name in (band.lower, band.upper))


@dataclass(frozen=True)
class Table(Figure):
    """Numbers in rows and columns: a row for each label of `rows`, or of `group` and `rows`.

    All variables have no dimension but `rows`, `group` and those of `select`; those of `footer`
    have not even these. `value` and `relative` are not used. Digits follow the uncertainty, units
    stand in the heads, of a pair the better cell is shaded. Rows where every column is NaN or
    empty are left out.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"mean": ("layer", [0.51, 0.62]), "sd": ("layer", [0.02, 0.03])},
    ...     coords={"layer": ["layers.0.mlp", "layers.1.mlp"]},
    ... )
    >>> table = Table("scores", "Scores", columns=[Column("mean", "score", sd="sd")])
    >>> "figures" in attach(data, Section("Scores", "TCAV scores."), [table]).attrs
    True
    """

    value: str = ""
    columns: Sequence[Column] = ()
    rows: str = "layer"
    group: str | None = None
    pairs: Sequence[Pair] = ()
    footer: Sequence[Footer] = ()

    kind = "table"

    def __post_init__(self) -> None:
        known = [column.value for column in self.columns]
        if not known:
            raise ArgumentError(f"columns of the table {self.id!r} must not be empty.")
        named = [name for pair in self.pairs for name in (pair.first, pair.second)]
        named += [name for line in self.footer for name in line.cells]
        for name in named:
            check_choice(f"a column of a pair or footer of the table {self.id!r}", name, known)

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from (self.rows, self.group)
        for column in self.columns:
            yield from (column.value, column.sd, *(column.interval or ()))
        yield from (name for line in self.footer for name in line.cells.values())


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
    >>> data = xr.Dataset(
    ...     {"first": ("word", [0.1, 0.9]), "second": ("word", [0.4, 0.2])},
    ...     coords={"word": ["cat", "dog"]},
    ... )
    >>> figure = Scatter("map", "Words", x="first", y="second", points="word")
    >>> "figures" in attach(data, Section("Words", "Two components."), [figure]).attrs
    True
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
            raise ArgumentError(f"x and y of the scatter {self.id!r} must name variables.")
        check_choice("x_scale", self.x_scale, ("linear", "log"))
        check_choice("y_scale", self.y_scale, ("linear", "log"))

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from (self.x, self.y, self.z, self.colour, self.label)
        yield from [self.points] if isinstance(self.points, str) else self.points


@dataclass(frozen=True)
class Words(Figure):
    """Clouds of words or tokens, one for each label of `groups`, sized by weight.

    Parameters
    ----------
    value
        Weight of every word over `groups` and `rank`; sizes follow it on one scale for the whole
        figure. A word whose weight is NaN or whose text is empty is no word.
    words
        Variable of texts over the same dimensions. Shown as :func:`show_token` writes them.
    groups
        Dimension of the clouds, such as orthants; ``None`` for one cloud.
    rank
        Dimension along which the words of a cloud lie; the 40 heaviest are shown.
    heading
        Variable of texts over `groups`, written over the clouds; the labels of `groups` if
        ``None``.
    parent
        Variable of texts over `groups`: the label of the group that this one refines, empty for a
        root. The clouds are then drawn as an indented tree.
    context
        Variable of texts over the dimensions of `words`, shown on hover.

    A dimension left over becomes a menu; a left-over ``step`` follows the slider.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {
    ...         "token": (("orthant", "rank"), [["the", "a"], ["cat", ""]]),
    ...         "typicality": (("orthant", "rank"), [[0.9, 0.4], [0.7, float("nan")]]),
    ...     },
    ...     coords={"orthant": ["+", "-"]},
    ... )
    >>> figure = Words("w", "Orthants", value="typicality", words="token", groups="orthant")
    >>> "figures" in attach(data, Section("Orthants", "Words by sign."), [figure]).attrs
    True
    """

    words: str = ""
    groups: str | None = "group"
    rank: str = "rank"
    heading: str | None = None
    parent: str | None = None
    context: str | None = None

    kind = "words"

    def __post_init__(self) -> None:
        if not self.words:
            raise ArgumentError(f"words of the figure {self.id!r} must name a variable of texts.")

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from (self.words, self.groups, self.rank, self.heading, self.parent, self.context)


@dataclass(frozen=True)
class Section:
    """The words of one section of the page: heading and margin notes.

    ``definition`` is one or two sentences, ``symbol`` the formula as plain Unicode text,
    ``null`` what pure chance or refitting gives, ``care`` what to be careful about,
    ``source`` paper, equation or definition.
    """

    title: str
    definition: str
    symbol: str = ""
    null: str = ""
    care: str = ""
    source: str = ""


def attach(
    dataset: xr.Dataset,
    section: Section,
    figures: Sequence[Figure],
    statements: Sequence[str] = (),
    role: str = "development",
) -> xr.Dataset:
    """Return `dataset` with its section, figures and sentences as JSON attributes.

    `role` says what the rows of the node mean in the developmental chart: ``"development"`` (they
    count in the page's verdict), ``"motion"`` (weights move; says nothing of function by itself),
    ``"track"`` (also the loss curve under the step slider) or ``"regimes"`` (as development; the
    shared boundaries of its curves are drawn through the chart and all figures over steps).

    Raises
    ------
    ArgumentError
        If a figure names a variable or dimension that `dataset` lacks, a table's column has a
        dimension beyond its rows, or `role` is unknown.

    Examples
    --------
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> figure = Curves("loss", "Loss on fixed text", value="loss", series=None)
    >>> sorted(attach(data, Section("Loss", "Mean loss."), [figure]).attrs)
    ['figures', 'role', 'section', 'statements']
    """
    check_choice("role", role, ROLES)
    for figure in figures:
        _check_names(figure, dataset)
        _check_dimensions(figure, dataset)
    return dataset.assign_attrs(
        section=json.dumps(asdict(section)),
        figures=json.dumps([f.to_dict() for f in figures]),
        statements=json.dumps(list(statements)),
        role=role,
    )


def _check_names(figure: Figure, dataset: xr.Dataset) -> None:
    known = set(dataset.variables) | set(dataset.dims)
    missing = [name for name in figure.names() if name is not None and name not in known]
    if missing:
        raise ArgumentError(
            f"figure {figure.id!r} names {missing} which the dataset does not have; "
            f"it has {sorted(map(str, known))}."
        )


def _check_dimensions(figure: Figure, dataset: xr.Dataset) -> None:
    """Refuse what a table has no room for: dimensions neither of its rows nor selected."""
    if not isinstance(figure, Table):
        return
    under = {name for line in figure.footer for name in line.cells.values()}
    rows = {figure.rows, figure.group}
    for name in figure.names():
        if name not in dataset.variables or name in dataset.dims:
            continue
        shown = set(figure.select) | (set() if name in under else rows)
        extra = [str(d) for d in dataset[name].dims if d not in shown]
        if extra:
            raise ArgumentError(
                f"{name!r} in the table {figure.id!r} has dimensions {extra} that the table does "
                f"not show; name one label of each in select."
            )


_SPACE_MARK = re.compile("^[ \N{LATIN CAPITAL LETTER G WITH DOT ABOVE}\N{LOWER ONE EIGHTH BLOCK}]")
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


def show_token(token: str) -> str:
    r"""Return a token as people read it: the mark of a leading space as ``#``, controls escaped.

    The mark is a space itself, or what tokenizers write for it: ``Ġ`` (byte-level BPE) or ``▁``
    (SentencePiece). Control, formatting and unassigned characters, among them those that turn
    the direction of text, are written as escapes; the joiners that scripts need stay.

    Examples
    --------
    >>> show_token("\u0120cat"), show_token(" cat"), show_token("a\nb"), show_token("\u202ebad")
    ('#cat', '#cat', 'a\\nb', '\\u202ebad')
    """
    return "".join(map(_shown, _SPACE_MARK.sub("#", token, count=1)))


def _shown(character: str) -> str:
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")
    if hidden and character not in _JOINERS:
        return character.encode("unicode_escape").decode("ascii")
    return character
