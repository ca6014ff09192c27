"""Tables of numbers that are declared once: their titles, units and columns follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..figures import Column, Table


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
            error, ends = f"{name}_stderr", (f"{name}_low", f"{name}_high")
            known = error if error in data else None
            interval = ends if ends[0] in data else None
            columns.append(Column(name, head, known, interval, *over))
        return Table(self.id, self.heading, columns=columns, rows=self.rows, caption=self.caption)


def along(dim: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, np.ndarray]]:
    """Return rows of numbers by name as variables along `dim`.

    Examples
    --------
    >>> along("layer", [{"rate": 1.0}, {"rate": 2.0}])
    {'rate': ('layer', array([1., 2.]))}
    """
    return {name: (dim, np.array([row[name] for row in rows])) for name in rows[0]}
