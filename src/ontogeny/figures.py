"""Figure specifications: what to draw, as plain data that any renderer can follow.

An observable's ``summarise`` attaches these to its dataset; the report renders them by ``kind``
and needs neither the observable's package nor a model (decision 15). Every name in a specification
is a variable or a dimension of the dataset that it is attached to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import xarray as xr

from .errors import ArgumentError

__all__ = ["Band", "Curves", "Figure", "Heatmap", "NullComparison", "Section", "attach"]


@dataclass(frozen=True)
class Band:
    """A grey band with its label: what refitting, resampling or pure chance gives."""

    lower: str
    upper: str
    label: str


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


@dataclass(frozen=True)
class Curves(Figure):
    """Lines over `x`, one for each label of `series`.

    `interval` names the variables of the uncertainty of every line, `band` one grey band
    (shared, or one per facet or series) that shows the null or the noise floor.
    `x_scale` ``"step"`` is logarithmic with step 0 set apart and can be switched to linear.
    """

    x: str = "step"
    series: str | None = "layer"
    interval: tuple[str, str] | None = None
    bands: Sequence[Band] = ()
    x_scale: str = "step"
    y_scale: str = "linear"

    kind = "curves"


@dataclass(frozen=True)
class Heatmap(Figure):
    """One value for each pair of labels of `x` and `y`."""

    x: str = "step"
    y: str = "layer"
    series: str | None = None

    kind = "heatmap"


@dataclass(frozen=True)
class NullComparison(Figure):
    """One dot for each label of `rows`, beside the bands of its null models."""

    rows: str = "block"
    bands: Sequence[Band] = ()
    interval: tuple[str, str] | None = None

    kind = "null"


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
    count in the page's verdict), ``"motion"`` (weights move; says nothing of function by itself)
    or ``"track"`` (also the loss curve under the step slider).

    Raises
    ------
    ArgumentError
        If a figure names a variable or dimension that `dataset` lacks.

    Examples
    --------
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> figure = Curves("loss", "Loss on fixed text", value="loss", series=None)
    >>> sorted(attach(data, Section("Loss", "Mean loss."), [figure]).attrs)
    ['figures', 'role', 'section', 'statements']
    """
    known = set(dataset.variables) | set(dataset.dims)
    for figure in figures:
        data = figure.to_dict()
        names = [data[k] for k in ("value", "relative", "facet", "x", "y", "rows") if data.get(k)]
        names += [v for b in data.get("bands", ()) for v in (b["lower"], b["upper"])]
        names += [*(data.get("interval") or ()), *data["select"]]
        names += [data["series"]] if data.get("series") else []
        missing = [n for n in names if n not in known]
        if missing:
            raise ArgumentError(
                f"figure {figure.id!r} names {missing} which the dataset does not have; "
                f"it has {sorted(map(str, known))}."
            )
    return dataset.assign_attrs(
        section=json.dumps(asdict(section)),
        figures=json.dumps([f.to_dict() for f in figures]),
        statements=json.dumps(list(statements)),
        role=role,
    )
