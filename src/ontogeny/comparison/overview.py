"""The first section of a comparison: what the runs or single models are, and the rows of nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..figures import Section, attach
from ..figures.tables import Column, Table
from ..trees import Nodes
from ..words.row_reading import ends_of
from .clock import Clock, LossClock, TokenClock
from .figures import marks
from .sources import Run, levels_of

# Rows that the first section shows; above, layers are thinned evenly within each quantity.
MOST_ROWS = 60


def runs_node(
    runs: Sequence[Run], nodes: Nodes, clock: Clock, words: Sequence[str]
) -> xr.Dataset:
    """Return the node ``runs``: a table of the runs, the chart of all rows, and `words`."""
    data = _table_of(runs)
    columns = [Column(str(name)) for name in data.data_vars]
    figures: list[Any] = [Table("table", "The runs", columns=columns, rows="run")]
    rows = rows_of(nodes)
    if rows is not None:
        thinned = _thinned(rows)
        data = data.merge(thinned.assign_coords(row=_unique(thinned)))
        if isinstance(clock, LossClock):
            chart = marks(data)
            if thinned.sizes["row"] < rows.sizes["row"]:
                more = f"Of more than {MOST_ROWS} rows some layers are shown here;"
                caption = f"{chart.caption} {more} the sections show all."
                chart = dataclasses.replace(chart, caption=caption)
            figures.insert(0, chart)
    section = Section(
        "Runs",
        "Every run was studied by itself and keeps its own noise, controls and verdicts; p-values "
        f"are corrected over the page of each run{_levels_words(runs)}.",
        care=_alignment(clock),
    )
    return attach(data, section, figures, words, role="runs")


def _levels_words(runs: Sequence[Run]) -> str:
    """Say by which levels rows were judged, where all runs state the same."""
    stated = levels_of(runs)
    if len(stated) != 1:
        return ""
    levels = stated.pop()
    return f", at α = {levels.change:g}, and at {levels.control:g} against control runs"


def _table_of(runs: Sequence[Run]) -> xr.Dataset:
    """Return what is known of each run as variables over ``run``."""
    models = [run.attribute("model", {}) for run in runs]
    controls = [
        len(run.attribute("controls", [])) or int(run.controlled) for run in runs
    ]
    parts: dict[str, tuple[Any, str]] = {
        "model": (
            np.array([str(m.get("class", "")) for m in models], dtype=object),
            "",
        ),
        "parameters": ([float(m.get("parameters", np.nan)) for m in models], "1"),
        "checkpoints": ([len(run.steps) for run in runs], "1"),
        "first_step": ([int(run.steps[0]) for run in runs], ""),
        "last_step": ([int(run.steps[-1]) for run in runs], ""),
        "controls": (controls, "1"),
    }
    table = {
        name: (
            "run",
            values,
            {"long_name": name.replace("_step", " {checkpoint}"), "units": units},
        )
        for name, (values, units) in parts.items()
    }
    return xr.Dataset(
        table, {"run": np.array([run.name for run in runs], dtype=object)}
    )


def rows_of(nodes: Nodes) -> xr.Dataset | None:
    """Return the rows of all nodes that count: not of weight change, nor distances to the end."""
    pieces = []
    for name, node in nodes.items():
        if "row" in node.dims and node.attrs.get("role") != "motion":
            node = node.isel(row=[end != "last" for end in ends_of(node)])
            if not node.sizes["row"]:
                continue
            numbers = [
                n
                for n, v in node.data_vars.items()
                if {"row"} <= {*v.dims} <= {"row", "run"}
            ]
            of_node = np.full(node.sizes["row"], name, dtype=object)
            piece = node[numbers].assign(row_node=("row", of_node))
            pieces.append(piece.drop_attrs(deep=False))
    if not pieces:
        return None
    shared = sorted(
        set.intersection(*(set(map(str, piece.data_vars)) for piece in pieces))
    )
    pieces = [piece[shared] for piece in pieces]
    return xr.concat(
        pieces, "row", coords="minimal", compat="override", combine_attrs="override"
    )


def _thinned(rows: xr.Dataset) -> xr.Dataset:
    """Return at most about `MOST_ROWS` rows, evenly over each quantity of a node, two at least."""
    share = min(MOST_ROWS / rows.sizes["row"], 1.0)
    quantities: dict[tuple[str, str], list[int]] = {}
    for place, quantity in enumerate(
        zip(rows.row_node.values, rows.row_name.values, strict=True)
    ):
        quantities.setdefault(quantity, []).append(place)
    places: list[int] = []
    for members in quantities.values():
        count = min(max(int(len(members) * share), 2), len(members))
        even = np.unique(np.linspace(0, len(members) - 1, count).round().astype(int))
        places += [members[i] for i in even]
    return rows.isel(row=sorted(places))


def _unique(rows: xr.Dataset) -> np.ndarray:
    """Return labels of rows; those that several nodes share with the name of the node."""
    labels = [str(label) for label in rows.row.values]
    names = [
        f"{label} ({node})" if labels.count(label) > 1 else label
        for label, node in zip(labels, map(str, rows.row_node.values), strict=True)
    ]
    return np.array(names, dtype=object)


def _alignment(clock: Clock) -> str:
    """Say what stands at one place of the axis."""
    if isinstance(clock, LossClock):
        return (
            "Curves are drawn over the loss that the run itself had reached, from the first time "
            "that it fell so far; between two checkpoints they are taken as straight."
        )
    of_tokens = isinstance(clock, TokenClock)
    what = (
        "the same number of training tokens" if of_tokens else "the same {checkpoint}"
    )
    return f"Runs are compared at {what}. Where a run has no checkpoint there is a gap."
