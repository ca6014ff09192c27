"""What was asked of a model, example by example and step by step, as tables for other programs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import xarray as xr

from ...markup import csv_text
from ...words.content import Content

_GROUP = "group_of_"  # of each example, in nodes of abilities


def write_examples(content: Content, folder: Path) -> list[Path]:
    """Write ``<node>-examples.csv`` for every node that asks pairs, questions or answers.

    A row is one example at one step: its number, its group and texts, and its scores, unrounded.
    """
    written = []
    for node in content.nodes:
        table = examples_of(node.dataset)
        if table is not None:
            stem = node.path.strip("/").replace("/", "-")
            written.append(folder / f"{stem}-examples.csv")
            written[-1].write_text(csv_text(table), encoding="utf-8")
    return written


def examples_of(data: xr.Dataset) -> pd.DataFrame | None:
    """Return a row for each example and step; None where no examples were asked.

    Examples
    --------
    >>> scores = [[-9.0, -8.0], [-7.5, -8.5]]
    >>> data = xr.Dataset(
    ...     {
    ...         "score_right": (("step", "pair"), scores),
    ...         "group_of_pair": ("pair", ["tense"] * 2),
    ...     },
    ...     coords={"step": [0, 100]},
    ... )
    >>> print(examples_of(data).to_csv(index=False), end="")
    step,pair,group,score_right
    0,0,tense,-9.0
    0,1,tense,-8.0
    100,0,tense,-7.5
    100,1,tense,-8.5
    """
    marks = [str(name) for name in data.data_vars if str(name).startswith(_GROUP)]
    if not marks or "step" not in data.dims:
        return None
    one = marks[0].removeprefix(_GROUP)
    of_steps = [n for n, v in data.data_vars.items() if {*v.dims} == {"step", one}]
    once = [n for n, v in data.data_vars.items() if v.dims == (one,)]
    if not of_steps:
        return None
    frame = data[[*once, *of_steps]].to_dataframe(dim_order=["step", one])
    frame = frame.reset_index().rename(columns={marks[0]: "group"})
    first = ["step", one, "group"]
    return frame[[*first, *(name for name in frame if name not in first)]]
