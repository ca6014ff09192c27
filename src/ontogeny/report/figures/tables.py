"""Tables read, the better cell of a pair shaded; and as LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ...figures import Column, Pair
from ...words.catalogue.captions import CAPTIONS
from ...words.formats import plain_text
from .axes import Axis
from .cells import (
    Cell,
    DataTable,
    Head,
    Line,
    TableColumn,
    cell_of,
    decimals_of,
    total_of,
)
from .drawable import Drawable, Problem
from .fields import check_dimensions, is_text, numbers, texts, variable

ROWS_SHOWN = 400  # rows of a table in the page; its files hold all


def read_table(drawable: Drawable) -> Drawable:
    """Read a table: all of it, as words and as numbers."""
    figure = drawable.figure
    data = drawable.node.dataset
    dims = [d for d in (figure.group, figure.rows) if d]
    if missing := [d for d in dims if d not in data.sizes]:
        raise Problem(f"The result has no dimension {missing[0]!r}.")
    sizes = {d: data.sizes[d] for d in dims}
    columns = [_column(drawable, column, sizes) for column in figure.columns]
    rows = np.flatnonzero(np.any([column.is_filled for column in columns], axis=0))
    columns = [column.rows(rows) for column in columns]
    places = np.stack(np.unravel_index(rows, tuple(sizes.values())), axis=1)
    lines = _lines([drawable.axis(d) for d in dims], places, columns, figure.pairs)
    blank = ("",) * (len(dims) - 1)
    footer = tuple(
        Line(
            (under.label, *blank),
            tuple(total_of(column, i, under.signed) for column in columns),
        )
        for i, under in enumerate(figure.footer)
    )
    labels = [line.full for line in lines] + [line.labels for line in footer]
    table = DataTable(
        row_heads=tuple(map(plain_text, dims)),
        heads=tuple(column.head for column in columns),
        lines=lines,
        footer=footer,
        frame=_frame(dims, labels, columns),
    )
    more = CAPTIONS["rows shown"].format(some=ROWS_SHOWN, all=f"{len(lines):,}")
    return replace(
        drawable, table=table, notice=more if len(lines) > ROWS_SHOWN else ""
    )


def _column(
    drawable: Drawable, column: Column, sizes: Mapping[str, int]
) -> TableColumn:
    name = column.value
    words = is_text(variable(drawable, name))
    array = texts(drawable, name) if words else numbers(drawable, name)
    label = column.label or drawable.label(name)
    units = drawable.units(name)
    unit = "" if units == "1" or units in label else units
    columns = [] if words else [n for n in (column.sd, *(column.interval or ())) if n]
    return TableColumn(
        column=column,
        head=Head(label, unit, column.over, words),
        values=_flat(array, sizes),
        beside={n: _flat(numbers(drawable, n), sizes).astype(float) for n in columns},
        totals=[
            _total(drawable, line.cells.get(name)) for line in drawable.figure.footer
        ],
    )


def _flat(array: xr.DataArray, sizes: Mapping[str, int]) -> np.ndarray:
    """Return an array over the table's rows, one value for each."""
    check_dimensions(array, list(sizes), "the table's rows")
    whole = array.drop_vars(list(array.coords)).expand_dims(
        {d: n for d, n in sizes.items() if d not in array.dims}
    )
    return whole.transpose(*sizes).values.ravel()


def _total(drawable: Drawable, name: str | None) -> float | None:
    """Return the number under a column, None where there is none."""
    if name is None:
        return None
    array = numbers(drawable, name)
    if array.ndim:
        raise Problem(f"{name!r} must be one number; it has dimensions {array.dims}.")
    return float(array)


def _lines(
    axes: Sequence[Axis],
    places: np.ndarray,
    columns: Sequence[TableColumn],
    pairs: Sequence[Pair],
) -> tuple[Line, ...]:
    shaded = _better(columns, pairs)
    decimals = [decimals_of(column) for column in columns]
    lines: list[Line] = []
    for i, place in enumerate(places):
        labels = tuple(_label(axis, k) for axis, k in zip(axes, place, strict=True))
        full = tuple(str(axis.values[k]) for axis, k in zip(axes, place, strict=True))
        cells = tuple(
            cell_of(column, i, decimals[c], shaded[c, i])
            for c, column in enumerate(columns)
        )
        starts = len(labels) > 1 and (not lines or lines[-1].labels[0] != labels[0])
        lines.append(Line(labels, cells, starts, full))
    return tuple(lines)


def _label(axis: Axis, i: int) -> str:
    """Return the label of a row; of names only those of modules are shortened."""
    whole = axis.kind == "category" and axis.group is None
    return str(axis.values[i]) if whole else axis.label(i)


def _better(columns: Sequence[TableColumn], pairs: Sequence[Pair]) -> np.ndarray:
    """Return which cells are the better one of a pair by more than both uncertainties together.

    Shape (columns, rows). An uncertainty that is not known counts as none.
    """
    shaded = np.zeros((len(columns), len(columns[0].values)), dtype=bool)
    place = {column.column.value: c for c, column in enumerate(columns)}
    for pair in pairs:
        a = place[pair.first]
        b = place[pair.second]
        if columns[a].head.words or columns[b].head.words:
            raise Problem(f"{pair.first!r} and {pair.second!r} must both hold numbers.")
        sign = -1.0 if pair.better == "lower" else 1.0
        first, second = (sign * columns[c].values.astype(float) for c in (a, b))
        error = np.hypot(*(np.nan_to_num(columns[c].spread) for c in (a, b)))
        shaded[a] |= first - second > error
        shaded[b] |= second - first > error
    return shaded


def _frame(
    dims: Sequence[str], labels: Sequence[Sequence[str]], columns: Sequence[TableColumn]
) -> pd.DataFrame:
    """Return all numbers unrounded: labels first, then the columns, then the lines under them."""
    parts = [pd.DataFrame(labels, columns=list(dims))]
    for column in columns:
        blank = [None] * len(column.totals)
        arrays = {column.column.value: [*column.values.tolist(), *column.totals]}
        arrays |= {
            name: [*array.tolist(), *blank] for name, array in column.beside.items()
        }
        parts += [
            pd.Series(values, name=name, dtype=object)
            for name, values in arrays.items()
        ]
    return pd.concat(parts, axis=1)


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "^": r"\textasciicircum{}",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "\n": " ",
    "∞": r"$\infty$",
}


def escaped(text: str) -> str:
    r"""Return `text` as LaTeX prints it.

    Examples
    --------
    >>> print(escaped("50% of layer_1"))
    50\% of layer\_1
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def latex_table(table: DataTable) -> str:
    """Return a table for a paper; it needs booktabs, and colortbl for shaded cells."""
    return _template().render(table=table)


@cache
def _template() -> Template:
    environment = Environment(
        *("<%", "%>", "<<", ">>"),
        loader=PackageLoader("ontogeny.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"tex": escaped, "cell": _cell}
    return environment.get_template("table.tex.j2")


def _cell(cell: Cell) -> str:
    if cell.missing:
        return "--"
    text = escaped(" ".join(filter(None, [cell.text, cell.spread])))
    if text.startswith("-"):
        text = f"$-${text[1:]}"
    return f"\\cellcolor{{black!12}}{text}" if cell.shaded else text
