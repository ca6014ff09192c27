"""What all kinds of figure share, the words of a section, and how both are put on a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, ClassVar

import xarray as xr

from ..errors import ArgumentError, check_choice

ROLES = ("development", "motion", "track", "regimes", "claims", "runs")


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
        One or two sentences under it: what is seen, what to be careful about. They hold of values
        and of differences between runs.
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
    shade
        What its intervals are: ``"±1.96 standard errors over texts"``.
    """

    id: str
    title: str
    value: str
    caption: str = ""
    relative: str | None = None
    relative_label: str = ""
    facet: str | None = None
    select: Mapping[str, Any] = field(default_factory=dict)
    shade: str = field(default="", kw_only=True)

    kind: ClassVar[str] = ""
    dimensions: ClassVar[tuple[str, ...]] = ("facet",)  # fields that name a dimension
    parts: ClassVar[
        Mapping[str, type]
    ] = {}  # fields that hold several objects, with their class

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as JSON-ready data with its ``kind``."""
        return {"kind": self.kind, **asdict(self)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Figure:
        """Return the figure that :meth:`to_dict` gave as `data`; unknown fields are ignored.

        Raises
        ------
        ArgumentError
            If the kind is unknown, or a field is missing or not what it must be.

        Examples
        --------
        >>> from ontogeny.figures import Curves
        >>> figure = Curves("loss", "Loss on fixed text", value="loss", series=None)
        >>> Figure.from_dict(figure.to_dict()) == figure
        True
        """
        kinds = {kind.kind: kind for kind in Figure.__subclasses__()}
        kind = data.get("kind")
        if kind not in kinds:
            raise ArgumentError(
                f"This version draws {', '.join(sorted(kinds))}; the figure's kind is {kind!r}."
            )
        cls = kinds[kind]
        lists = {
            name: [_build(part, item) for item in data.get(name) or ()]
            for name, part in cls.parts.items()
        }
        return _build(cls, {**data, **lists})

    def check(self, dataset: xr.Dataset) -> None:
        """Check that a dataset has what the figure names.

        Raises
        ------
        ArgumentError
            If it lacks a variable or a dimension, or one does not fit the figure.
        """
        names = set(dataset.variables) | set(dataset.dims)
        missing = [
            name for name in self.names() if name is not None and name not in names
        ]
        if missing:
            raise ArgumentError(
                f"figure {self.id!r} names {missing} which the dataset does not have; "
                f"it has {sorted(map(str, names))}."
            )

    def variables(self) -> Iterator[str | None]:
        """Give every variable that the figure draws, ``None`` for what it leaves out."""
        yield from (self.value or None, self.relative, *self.companions())

    def companions(self) -> Iterator[str]:
        """Give the variables that are drawn beside the value, in its unit."""
        yield from ()

    def in_steps(self) -> Iterator[str]:
        """Give the variables that hold training steps and are drawn on the step axis."""
        yield from ()

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names, ``None`` for none."""
        yield from self.variables()
        yield from (getattr(self, use) for use in self.dimensions)
        yield from self.select


def _build(kind: type, data: Mapping[str, Any]) -> Any:
    """Return a dataclass from those of `data` that are its fields; JSON's lists become tuples."""
    values = {part.name: data[part.name] for part in fields(kind) if part.name in data}
    for part in fields(kind):
        if part.name not in values and part.default is part.default_factory is MISSING:
            raise ArgumentError(f"Its specification lacks {part.name!r}.")
    return kind(
        **{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    )


@dataclass(frozen=True)
class Section:
    """The words of one section of the page: heading and margin notes.

    ``definition`` is one or two sentences, ``symbol`` the formula as plain Unicode text,
    ``null`` what pure chance or refitting gives, ``care`` what to be careful about,
    ``source`` paper, equation or definition. An observable's section may name its arguments in
    braces: ``"Lives of concepts ({of})"``.
    """

    title: str
    definition: str
    symbol: str = ""
    null: str = ""
    care: str = ""
    source: str = ""

    def filled(self, arguments: Mapping[str, Any]) -> Section:
        """Return the section with the values of arguments where it names them in braces.

        Examples
        --------
        >>> Section("Lives of concepts ({of})", "").filled({"of": "concepts-ica"}).title
        'Lives of concepts (concepts-ica)'
        """
        texts = asdict(self)
        for name, value in arguments.items():
            texts = {
                key: text.replace(f"{{{name}}}", str(value))
                for key, text in texts.items()
            }
        return Section(**{key: text.strip() for key, text in texts.items()})


def attach(
    dataset: xr.Dataset,
    section: Section,
    figures: Sequence[Figure],
    statements: Sequence[str] = (),
    role: str = "development",
) -> xr.Dataset:
    """Return `dataset` with its section, figures and sentences as JSON attributes.

    `role` says what the rows of the node mean in the developmental chart: ``"development"`` (they
    count in the page's verdict), ``"motion"`` (weight change; says nothing of function by itself),
    ``"track"`` (also the loss curve under the step slider), ``"regimes"`` (as development; the
    shared boundaries of its curves are drawn through the chart and all figures over steps),
    ``"claims"`` (no rows: its ``kind`` and ``certainty`` over claims are what the page's heading
    counts) or ``"runs"`` (what a comparison says of its runs; stands first).

    Raises
    ------
    ArgumentError
        If a figure names a variable or dimension that `dataset` lacks, a table's column has a
        dimension beyond its rows, or `role` is unknown.

    Examples
    --------
    >>> from ontogeny.figures import Curves
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> figure = Curves("loss", "Loss on fixed text", value="loss", series=None)
    >>> sorted(attach(data, Section("Loss", "Mean loss."), [figure]).attrs)
    ['figures', 'role', 'section', 'statements']
    """
    check_choice("role", role, ROLES)
    for figure in figures:
        figure.check(dataset)
    return dataset.assign_attrs(
        section=json.dumps(asdict(section)),
        figures=json.dumps([f.to_dict() for f in figures]),
        statements=json.dumps(list(statements)),
        role=role,
    )


def extend(
    dataset: xr.Dataset, figures: Sequence[Figure] = (), statements: Sequence[str] = ()
) -> xr.Dataset:
    """Return a dataset that has a section with further figures and sentences behind its own.

    Examples
    --------
    >>> data = attach(xr.Dataset(), Section("Loss", "Mean loss."), [], ["It fell."])
    >>> extend(data, statements=["Then it rose."]).attrs["statements"]
    '["It fell.", "Then it rose."]'
    """
    for figure in figures:
        figure.check(dataset)
    lists = {
        name: json.loads(dataset.attrs[name]) for name in ("figures", "statements")
    }
    return dataset.assign_attrs(
        figures=json.dumps([*lists["figures"], *(f.to_dict() for f in figures)]),
        statements=json.dumps([*lists["statements"], *statements]),
    )
