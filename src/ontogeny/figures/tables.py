"""Tables: numbers in rows and columns, with their uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import xarray as xr

from ..errors import ArgumentError, check_choice
from .base import Figure


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

    ``Footer("sum of differences", {"late_mean": "difference"}, signed=True)`` writes the variable
    ``difference`` under the column whose value is ``late_mean``, with a plus where it is positive.
    """

    label: str
    cells: Mapping[str, str]
    signed: bool = False


@dataclass(frozen=True)
class Table(Figure):
    """Numbers in rows and columns: a row for each label of `rows`, or of `group` and `rows`.

    All variables have no dimension but `rows`, `group` and those of `select`; those of `footer`
    have not even these. `value` and `relative` are not used. Digits follow the uncertainty, units
    stand in the heads, of a pair the better cell is shaded. Rows where every column is NaN or
    empty are left out.

    Examples
    --------
    >>> early = Column("early", "early", sd="early_sd", over="syntactic")
    >>> late = Column("late", "late", sd="late_sd", over="syntactic")
    >>> total = Footer("sum of differences", {"late": "difference"})
    >>> pair = Pair("early", "late")
    >>> Table("t", "Scores", columns=[early, late], pairs=[pair], footer=[total]).kind
    'table'
    """

    value: str = ""
    columns: Sequence[Column] = ()
    rows: str = "layer"
    group: str | None = None
    pairs: Sequence[Pair] = ()
    footer: Sequence[Footer] = ()

    kind = "table"
    dimensions = ("group", "rows")
    parts = {"columns": Column, "pairs": Pair, "footer": Footer}

    def __post_init__(self) -> None:
        columns = [column.value for column in self.columns]
        if not columns:
            raise ArgumentError(f"columns of the table {self.id!r} must not be empty.")
        pairs = ((pair.first, pair.second) for pair in self.pairs)
        feet = (line.cells for line in self.footer)
        for name in chain(*pairs, *feet):
            check_choice(
                f"a column of a pair or footer of the table {self.id!r}", name, columns
            )

    def check(self, dataset: xr.Dataset) -> None:
        """Check names, and refuse dimensions that are neither of the rows nor selected."""
        super().check(dataset)
        under = set(self._in_footer())
        rows = {self.rows, self.group}
        for name in self.names():
            if name not in dataset.variables or name in dataset.dims:
                continue
            dims = set(self.select) | (set() if name in under else rows)
            extra = [str(d) for d in dataset[name].dims if d not in dims]
            if extra:
                raise ArgumentError(
                    f"{name!r} in the table {self.id!r} has dimensions {extra} that the table does "
                    f"not show; name one label of each in select."
                )

    def variables(self) -> Iterator[str | None]:
        """Give every variable that the figure draws."""
        for column in self.columns:
            yield from (column.value, column.sd, *(column.interval or ()))
        yield from self._in_footer()

    def _in_footer(self) -> Iterator[str]:
        return chain.from_iterable(line.cells.values() for line in self.footer)


def percent(share: float) -> str:
    """Return a probability in percent, as tables write it.

    Examples
    --------
    >>> percent(0.004), percent(0.163), percent(1.0)
    ('<1 %', '16 %', '100 %')
    """
    return "<1 %" if share < 0.005 else f"{100 * share:.0f} %"
