"""What a figure draws as a tidy table: one row for each point, dimensions first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pandas as pd
import xarray as xr

from ...words.row_words import MARKS, RECORD, mark_records, record
from ...words.rows import Row
from .drawable import Drawable


def figure_frame(drawable: Drawable) -> pd.DataFrame:
    """Return a figure's data: a row for each point, first its dimensions, then the variables."""
    names = drawable.written
    data = xr.Dataset({name: drawable.selected(name).drop_attrs() for name in names})
    order = list(dict.fromkeys(chain(*(array.dims for array in data.values()))))
    return data.to_dataframe(dim_order=order).reset_index()[[*order, *names]]


def chart_frame(rows: Sequence[Row], view: str) -> pd.DataFrame:
    """Return what a view of the chart draws.

    Of its cells there is a line for each row and step, of its intervals one for each row and run or
    control run.
    """
    if view == "cells":
        return _cells(rows)
    marks = chain.from_iterable(map(mark_records, rows))
    return pd.DataFrame(marks, columns=list(MARKS))


def _cells(rows: Sequence[Row]) -> pd.DataFrame:
    lines = []
    for row in rows:
        fields = record(row)
        for point in zip(row.steps, row.progress, row.distinct, strict=True):
            lines.append((row.name, *point, *fields))
    return pd.DataFrame(lines, columns=["row", "step", "progress", "distinct", *RECORD])


def row_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return one line for each row of the chart: where it went, when, and how it was judged."""
    return pd.DataFrame(
        [(row.name, *record(row)) for row in rows], columns=["row", *RECORD]
    )
