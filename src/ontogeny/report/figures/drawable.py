"""A figure of a result with the arrays that it draws: what the page and paper renderers read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Curves
from ...summary.controls import RUN
from ...words.catalogue.captions import CAPTIONS
from ...words.formats import plain_text
from ...words.labels import LayerGroups
from ...words.nodes import Node, attribute
from ...words.voice import LABELS, OF_STEPS, Voice
from .axes import Axis, read_axis
from .cells import DataTable

# The steps that control runs were read at, along which their values are stored in the page.
CONTROL_STEP = "control step"

STEP_PANELS = 8  # panels of a figure with one panel for each step

# Points of one figure that are drawn; more make a page slow and say nothing more.
POINTS_SHOWN = 3_000


class Problem(Exception):  # noqa: N818 (not an error of the caller: it is shown in the page)
    """Why a figure cannot be drawn; its text is shown in the figure's place."""


@dataclass(frozen=True)
class Runs:
    """The runs of one figure.

    ``names`` holds all of them; where ``controls`` holds their values by the name of the variable
    that they belong to, the first is the run and the others are its controls. ``others`` are the
    places of those that a difference is taken from, for the first run. ``factor`` times their
    standard deviation is half of the grey band, NaN where there are too few for one. ``views`` are
    the figure's arrangements, each as a drawable.
    """

    names: Sequence[str]
    controls: Mapping[str, xr.DataArray]
    others: Sequence[int]
    factor: float
    views: Mapping[str, Drawable]

    @property
    def control_names(self) -> Sequence[str]:
        """Names of the control runs in the result."""
        return [str(name) for name in next(iter(self.controls.values()))[RUN].values]

    @property
    def steps(self) -> np.ndarray:
        """The steps that control runs were read at, of which none may be thinned out."""
        if not self.controls:
            return np.array([], dtype=int)
        return np.asarray(next(iter(self.controls.values()))[CONTROL_STEP].values)


@dataclass(frozen=True)
class Drawable:
    """A figure of one node, checked against the node's data.

    ``id`` is unique in the page. ``choose`` holds dimensions left over, for which the reader picks
    one label at a time. ``extra`` holds arrays made for this figure; they stand for variables of
    these names. ``table`` is a table as it is written, ``tree`` holds clouds of words in the order
    of drawing, each with its depth. ``places`` holds the places that thinning leaves along a
    dimension. ``runs`` holds the runs that the reader may compare in it. A ``derived`` figure has
    a node of its own, made for it. ``notice`` says what reading the figure left out, ``problem``
    why it is not drawn. ``voice`` is that of its run.
    """

    id: str
    node: Node
    figure: Any
    groups: LayerGroups
    choose: Sequence[str] = ()
    extra: Mapping[str, xr.DataArray] = field(default_factory=dict)
    table: DataTable | None = None
    tree: Sequence[Sequence[int]] = ()
    places: Mapping[str, np.ndarray] = field(default_factory=dict)
    runs: Runs | None = None
    derived: bool = False
    notice: str = ""
    problem: str = ""
    voice: Voice = OF_STEPS

    @property
    def file_stem(self) -> str:
        """Name of the figure's files, without what a file system may not like."""
        stem = re.sub(
            r"[^A-Za-z0-9]+", "-", f"{self.node.path}-{self.figure.id}"
        ).strip("-")
        return stem[:120] or "figure"

    @property
    def colour_dimension(self) -> str | None:
        """The dimension whose labels colour the points of a scatter."""
        colour = getattr(self.figure, "colour", None)
        return (
            colour
            if colour in (*self.choose, *self.points, self.figure.facet)
            else None
        )

    @property
    def points(self) -> Sequence[str]:
        """Dimensions whose labels are the points of a scatter."""
        return getattr(self.figure, "points", ())

    @property
    def variables(self) -> list[str]:
        """All variables that the figure draws, each once."""
        names = dict.fromkeys(name for name in self.figure.variables() if name)
        names.update(dict.fromkeys(self.extra))
        return [name for name in names if name != self.colour_dimension]

    @property
    def stored(self) -> list[str]:
        """The variables that are in the result; the others were made for the figure."""
        return [name for name in self.variables if name in self.node.dataset.variables]

    @property
    def written(self) -> list[str]:
        """The variables of the figure's data file: what it draws, or all that its node is for."""
        return (
            list(map(str, self.node.dataset.data_vars)) if self.derived else self.stored
        )

    @property
    def axes(self) -> dict[str, str]:
        """The dimension used as x, y, series, rows, facet or groups, as far as there is one."""
        uses = self.figure.dimensions
        return {use: name for use in uses if (name := getattr(self.figure, use))}

    def selected(self, name: str) -> xr.DataArray:
        """Return the figure's selection of a variable of the result."""
        array = self.node.dataset[name]
        select = {
            d: label for d, label in self.figure.select.items() if d in array.dims
        }
        try:
            return array.sel(select).reset_coords(drop=True)
        except (KeyError, ValueError, IndexError):
            labels = dict(self.figure.select)
            raise Problem(f"The selection {labels!r} is not in {name!r}.") from None

    def array(self, name: str) -> xr.DataArray:
        """Return what is drawn under a variable's name, thinned."""
        return self.thin(
            self.extra[name] if name in self.extra else self.selected(name)
        )

    def thin(self, array: xr.DataArray) -> xr.DataArray:
        """Return the places of an array that thinning leaves."""
        return array.isel({d: i for d, i in self.places.items() if d in array.dims})

    def array_key(self, name: str) -> tuple[str, str]:
        """Return what tells an array from others of its name in the node."""
        return name, self.id if name in self.extra else str(dict(self.figure.select))

    def relative_name(self, name: str) -> str | None:
        """Return the variable that is a companion's own relative form, if the result has it."""
        is_pair = self.figure.relative and name in self.figure.companions()
        return (
            f"{name}_relative"
            if is_pair and f"{name}_relative" in self.node.dataset
            else None
        )

    def axis(self, dimension: str) -> Axis:
        """Return the labels along a dimension of the arrays."""
        controls = self.runs.controls.values() if self.runs else ()
        arrays = [self.node.dataset, *self.extra.values(), *controls]
        coordinate = next(a[dimension] for a in arrays if dimension in a.dims)
        labels = coordinate.values
        if dimension in self.places:
            labels = labels[self.places[dimension]]
        if LABELS in coordinate.attrs:
            shown = attribute(coordinate.attrs, LABELS, {}, f"coordinate {dimension!r}")
            labels = np.array([shown.get(str(each), each) for each in labels])
        return read_axis(dimension, labels, self.groups)

    @property
    def caption(self) -> str:
        """What is seen, and what its intervals are."""
        if not self.figure.shade:
            return str(self.figure.caption)
        marks = "Shade" if self.figure.kind == Curves.kind else "Bars"
        return f"{self.figure.caption} {marks}: {self.figure.shade}.".strip()

    def label(self, name: str) -> str:
        """Return what a variable is, in words."""
        return plain_text(self.node.dataset[name].attrs.get("long_name", name))

    def units(self, name: str) -> str:
        """Return the unit of a variable; 1 where it has none."""
        return plain_text(self.node.dataset[name].attrs.get("units", ""))

    def words(self, name: str) -> str:
        """Return what a variable is, with its unit."""
        units = self.units(name)
        return (
            self.label(name) if units in ("", "1") else f"{self.label(name)} ({units})"
        )

    @property
    def panels(self) -> list[int] | None:
        """Which labels of the facet have a panel, None for all; of steps no more than a few."""
        facet = self.axes.get("facet")
        if facet is None:
            return None
        axis = self.axis(facet)
        if axis.kind != "step" or len(axis) <= STEP_PANELS:
            return None
        return np.unique(
            np.linspace(0, len(axis) - 1, STEP_PANELS).round().astype(int)
        ).tolist()

    @property
    def point_count(self) -> int:
        """How many points a panel of a scatter has."""
        return math.prod(len(self.axis(dimension)) for dimension in self.points)

    @property
    def drawn(self) -> list[int] | None:
        """Which points of a scatter are drawn, None for all: a sample with a fixed seed."""
        room = max(POINTS_SHOWN // self._panel_count, 1)
        count = self.point_count
        if not self.points or count <= room:
            return None
        return np.sort(
            np.random.default_rng(0).choice(count, room, replace=False)
        ).tolist()

    @property
    def _panel_count(self) -> int:
        facet = self.axes.get("facet")
        return max(len(self.panels or self.axis(facet)), 1) if facet else 1

    @property
    def notices(self) -> str:
        """What is left out, in words: steps, panels, points."""
        if self.problem:
            return ""
        sizes = self.node.dataset.sizes
        thinned = [
            CAPTIONS["along"].format(some=f"{len(i):,}", all=f"{sizes[d]:,}", axis=d)
            for d, i in self.places.items()
            if len(i) < sizes[d]
        ]
        parts = [self.notice]
        if thinned:
            parts.insert(0, CAPTIONS["thinned"].format(what=", ".join(thinned)))
        if panels := self.panels:
            total = len(self.axis(self.axes["facet"]))
            of = {"all": f"{total:,}", "checkpoint": self.voice.checkpoint}
            parts.append(CAPTIONS["panels shown"].format(some=len(panels), **of))
        if indices := self.drawn:
            key = "points of panels" if self._panel_count > 1 else "points shown"
            some = {"some": f"{len(indices):,}", "all": f"{self.point_count:,}"}
            parts.append(CAPTIONS[key].format(**some))
        return " ".join(filter(None, parts))
