"""Rows of several runs beside one another: one row a quantity and layer, a mark a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from .formats import plain_text
from .row_reading import read_rows
from .row_variables import NUMBERS
from .row_words import direction, mean
from .rows import ControlRow, Row, RunRow
from .voice import Voice


def read_run_rows(
    dataset: xr.Dataset, title: str, section: str, role: str, voice: Voice
) -> list[Row]:
    """Return the rows of one node of a comparison, none where it has none of its own.

    Each row holds those of its runs. Its half-change step is their median, the ends of its interval
    are the first and the last of theirs, and ``changed``, ``beyond``, ``learned`` and ``lost``
    hold where they do in every run. By loss there are no half-change steps, but losses.
    """
    steps = dataset.get("half_step", xr.DataArray())
    if role == "runs" or "half_loss" in dataset or set(steps.dims) != {"row", "run"}:
        return []
    names = [plain_text(name) for name in dataset["run"].values]
    labels = dataset.get("row_name")
    of_runs = [
        read_rows(_one_run(dataset, k), title, section, role, voice=voice)
        for k in range(len(names))
    ]
    marked = _marked(dataset)
    measured = [any(row.controls for row in rows) for rows in of_runs]
    controlled = list(map(bool, marked.attrs.get("controlled", measured)))
    together = []
    for i, firms in enumerate(marked.values.tolist()):
        rows = [rows[i] for rows in of_runs]
        runs = list(map(RunRow, names, rows, firms, controlled))
        named = "" if labels is None else plain_text(labels.values[i])
        quantity = named or runs[0].row.quantity
        together.append(_together(runs, quantity))
    return together


def _one_run(dataset: xr.Dataset, place: int) -> xr.Dataset:
    """Return the rows of one run as its own study has them, its control runs along ``run``."""
    names = [
        n
        for n, v in dataset.variables.items()
        if "row" in v.dims or n in ("step", "control")
    ]
    one = dataset[names].isel(run=place, drop=True)
    return one.rename(control="run") if "control" in one.dims else one


def _marked(dataset: xr.Dataset) -> xr.DataArray:
    """Return what counts as shown, (row, run): ``marked``, or what changed."""
    marked = dataset["marked" if "marked" in dataset else "changed"].transpose(
        "row", "run"
    )
    return marked.copy(data=np.nan_to_num(marked.values.astype(float)) > 0)


def _together(runs: Sequence[RunRow], quantity: str) -> Row:
    rows = [run.row for run in runs]
    halves = [row.half_step for row in rows if math.isfinite(row.half_step)] or [
        math.nan
    ]
    numbers: dict[str, Any] = dict.fromkeys(NUMBERS, math.nan)
    if len({direction(row) for row in rows}) == 1:
        for name in ("first_value", "last_value"):
            numbers[name] = mean([getattr(row, name) for row in rows])
    numbers |= {
        "half_step": float(np.median(halves)),
        "half_step_low": min(halves),
        "half_step_high": max(halves),
    }
    nothing = np.empty(0)
    controls: list[ControlRow] = []
    for run in runs:
        for control in run.row.controls:
            name = f"{control.name} of {run.name}"
            controls.append(replace(control, name=name))
    return replace(
        rows[0],
        quantity=quantity,
        steps=nothing.astype(int),
        progress=nothing,
        distinct=nothing.astype(bool),
        **numbers,
        changed=any(run.firm for run in runs),
        beyond=all(row.beyond for row in rows),
        learned=all(row.learned for row in rows),
        lost=all(row.lost for row in rows),
        controls=tuple(controls),
        runs=tuple(runs),
    )
