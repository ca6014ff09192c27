"""The figures that follow from declared quantities: curves with intervals, tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from ..figures import (
    Band,
    Column,
    Curves,
    Figure,
    Heatmap,
    NullComparison,
    Scatter,
    Table,
)
from ..quantities import Quantity
from ..words.names import Names, belongs_to

# Dimensions of which each label has an interval and lines of its own, and how many lines lie over
# one another before each has a panel.
PANELS = ("group",)
_MANY = 3


def default_figures(data: xr.Dataset, quantities: Sequence[Quantity]) -> list[Curves]:
    """Return the curves of every quantity that is drawn and has a value at steps.

    Examples
    --------
    >>> data = xr.Dataset({"x": (("step", "layer"), np.ones((2, 3)))})
    >>> (figure,) = default_figures(data, [Quantity("x", "norm")])
    >>> figure.title, figure.series, figure.interval
    ('Norm', 'layer', None)
    """
    return list(chain.from_iterable(_figures(data, q) for q in quantities))


def figures_of_one(
    quantities: Sequence[Quantity], figures: Sequence[Figure]
) -> list[Figure]:
    """Return figures of a single checkpoint: curves become dots beside their nulls.

    A single number has none, and a distance to this very step neither; heat maps over steps and
    heads lie over layers and heads.
    """
    distances = {quantity.name for quantity in quantities if quantity.relative_to}
    return [
        figure
        for candidate in figures
        if candidate.value not in distances
        and (figure := _of_one(candidate)) is not None
    ]


def _of_one(figure: Figure) -> Figure | None:
    if isinstance(figure, Heatmap) and figure.x == "step":
        return (
            dataclasses.replace(figure, x=figure.facet, facet=None)
            if figure.facet
            else None
        )
    if not isinstance(figure, Curves) or figure.x != "step":
        return figure
    rows = figure.series or figure.facet
    if rows is None:
        return None
    names = (
        "id",
        "title",
        "value",
        "caption",
        "relative",
        "relative_label",
        "select",
        "bands",
        "interval",
        "shade",
    )
    same = {name: getattr(figure, name) for name in names}
    facet = figure.facet if figure.series else None
    return NullComparison(**same, rows=rows, facet=facet)


def plain_figures(data: xr.Dataset, names: Names) -> list[Curves]:
    """Return curves of every variable over steps alone, or over steps and layers.

    They are for a node that declares no quantity and draws no figure of its own.

    Parameters
    ----------
    data
        Stacked cells.
    names
        What the variables are, and their units.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"norm": (("step", "layer"), np.ones((2, 3))), "norm_low": ("step", [0, 0])}
    ... )
    >>> (figure,) = plain_figures(data, {"norm": ("mean norm", "activation units")})
    >>> figure.id, figure.title, figure.series
    ('norm', 'Mean norm', 'layer')
    """
    variables = [
        name
        for name, variable in data.data_vars.items()
        if {"step"} <= set(variable.dims) <= {"step", "layer"}
        and variable.dtype.kind in "fiu"
        and not belongs_to(str(name), data)
        and str(name).isidentifier()
    ]
    words = {str(name): names.get(str(name), ("", "")) for name in variables}
    plain = [
        Quantity(name, title or name, units or "1")
        for name, (title, units) in words.items()
    ]
    return default_figures(data, plain)


def _figures(data: xr.Dataset, quantity: Quantity) -> Iterator[Curves]:
    name = quantity.name
    if not quantity.figure or name not in data or "step" not in data[name].dims:
        return
    if not quantity.per:
        yield _curves(data, quantity, name, {})
        return
    # The figure of what rows and sentences say comes first.
    judged = quantity.at.get(quantity.per)
    for label in sorted(
        map(str, data[quantity.per].values), key=lambda label: label != judged
    ):
        yield _curves(data, quantity, label, {quantity.per: label})


def _curves(
    data: xr.Dataset, quantity: Quantity, label: str, at: dict[str, Any]
) -> Curves:
    name = quantity.name
    select = {**quantity.select, **at}
    dims = [str(d) for d in data[name].dims if d != "step" and d not in select]
    series = quantity.series
    if series is None:
        series = (
            "layer" if "layer" in dims else next((d for d in dims if d != "run"), "")
        )
    free = [d for d in dims if d not in (series, "run")]
    facet = quantity.facet or next(iter(free), None)
    if series in PANELS and facet is None and data.sizes.get(series, 0) >= _MANY:
        facet = series
        series = ""
    figure = Curves(
        label.replace("_", "-"),
        quantity.heading_of(at.get(quantity.per, "")),
        value=name,
        caption=quantity.caption,
        shade=_shade(data, quantity),
        relative=quantity.share,
        relative_label=quantity.share_of,
        facet=facet,
        select=select,
        series=series or None,
        interval=(f"{name}_low", f"{name}_high") if f"{name}_low" in data else None,
        bands=list(_bands(data, quantity, select)),
        y_scale=quantity.y_scale,
    )
    if dashed := _dashed(data, quantity):
        figure = dataclasses.replace(
            figure, reference=dashed[0], reference_label=dashed[1]
        )
    return figure_of_runs(figure) if "run" in dims else figure


def figure_of_runs(figure: Any) -> Any:
    """Return a figure with runs side by side: one line, row or panel a run.

    What was a line or a row gets a panel of its own, unless there are panels already. A figure
    that names the runs itself stays as it is.

    Examples
    --------
    >>> curves = figure_of_runs(Curves("loss", "Loss", value="loss", series="set"))
    >>> curves.series, curves.facet
    ('run', 'set')
    """
    if "run" in figure.names():
        return figure
    changes: dict[type[Figure], dict[str, Any]] = {
        Curves: {
            "series": "run",
            "facet": figure.facet or getattr(figure, "series", None),
        },
        NullComparison: {
            "rows": "run",
            "facet": figure.facet or getattr(figure, "rows", None),
        },
        Heatmap: {"facet": "run"},
        Scatter: {"facet": "run"},
        Table: {"group": "run"},
    }
    return dataclasses.replace(figure, **changes.get(type(figure), {}))


def _dashed(data: xr.Dataset, quantity: Quantity) -> tuple[str, str] | None:
    """Return the line that is drawn dashed beside a value, and its label, if one was measured."""
    for end, label in quantity.dashed.items():
        name = f"{quantity.name}_{end}"
        if name in data:
            return name, label
    return None


def _bands(
    data: xr.Dataset, quantity: Quantity, select: dict[str, Any]
) -> Iterator[Band]:
    """Give a band for each null that has a value where the figure is drawn."""
    for null, label in quantity.nulls.items():
        name = f"{quantity.name}_{null}"
        low, high = (
            (f"{name}_low", f"{name}_high") if f"{name}_low" in data else (name, name)
        )
        if low in data:
            values = data[low].sel(
                {k: v for k, v in select.items() if k in data[low].dims}
            )
            if np.isfinite(values.values).any():
                yield Band(low, high, label)


def _shade(data: xr.Dataset, quantity: Quantity) -> str:
    """Return what the shade is."""
    if not quantity.shade and f"{quantity.name}_stderr" in data:
        return f"±1.96 standard errors over {quantity.unit}"
    return quantity.shade


@dataclass(frozen=True)
class NumberTable:
    """A table of numbers over `rows`, with their errors or intervals where the data have any.

    Parameters
    ----------
    id, heading, caption
        Of the figure.
    numbers
        A line for each column: variable, title, units and head, and the head above neighbouring
        columns where there is one.
    rows
        Dimension of the rows.

    Examples
    --------
    >>> table = NumberTable("fit", "The fits", [("rate", "rate", "per step", "rate c")])
    >>> data = xr.Dataset({"rate": ("layer", [0.5]), "rate_stderr": ("layer", [0.1])})
    >>> table.names(), table.figure(data).columns[0].sd
    ({'rate': ('rate', 'per step')}, 'rate_stderr')
    """

    id: str
    heading: str
    numbers: Sequence[tuple[str, str, str, str] | tuple[str, str, str, str, str]]
    rows: str = "layer"
    caption: str = ""

    def names(self) -> dict[str, tuple[str, str]]:
        """Return title and units of every number."""
        return {name: (title, units) for name, title, units, *_ in self.numbers}

    def figure(self, data: xr.Dataset) -> Table:
        """Return the figure: ``x_stderr``, or ``x_low`` and ``x_high``, stand behind each ``x``."""
        columns = []
        for name, _, _, head, *over in self.numbers:
            error = f"{name}_stderr"
            ends = (f"{name}_low", f"{name}_high")
            error_name = error if error in data else None
            interval = ends if ends[0] in data else None
            columns.append(Column(name, head, error_name, interval, *over))
        return Table(
            self.id, self.heading, columns=columns, rows=self.rows, caption=self.caption
        )


def along(
    dim: str, rows: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[str, np.ndarray]]:
    """Return rows of numbers by name as variables along `dim`.

    Examples
    --------
    >>> along("layer", [{"rate": 1.0}, {"rate": 2.0}])
    {'rate': ('layer', array([1., 2.]))}
    """
    return {name: (dim, np.array([row[name] for row in rows])) for name in rows[0]}
