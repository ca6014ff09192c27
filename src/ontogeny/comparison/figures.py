"""The figures of several runs: curves that the page compares them in, and marks of each run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import xarray as xr

from ..errors import ArgumentError
from ..figures import Curves, Figure, Heatmap, Marks, NullComparison, Table, attach
from ..figures import Section as SectionWords
from ..summary.controls import NUMBERED, RUN
from ..summary.figures import figure_of_runs
from .clock import Clock

# More dots beside nulls get a panel for each run instead of a panel each.
MOST_ROWS = 12


def figures_of_runs(
    data: xr.Dataset, figures: Sequence[Figure], clock: Clock, dimension: str
) -> list[Figure]:
    """Return what the page draws of one node.

    Parameters
    ----------
    data
        The node along ``run``.
    figures
        As one run has them.
    clock
        Along what the runs are compared.
    dimension
        Dimension of the curves of this node: ``step``, or that of the clock.
    """
    candidates: list[Figure] = []
    for figure in figures:
        for placed in _along(figure, dimension):
            candidates += _of_runs(placed, data)
    if data.sizes.get("row", 0) > 1 and clock.dimension == "loss_level":
        candidates.append(marks(data))
    return [figure for figure in candidates if _fits(figure, data)]


def marks(data: xr.Dataset) -> Marks:
    """Return the rows by loss with a mark for each run; those by step are the page's own chart."""
    firm = str(data["marked"].attrs.get("long_name", ""))
    return Marks(
        "runs",
        "Half-change loss of every run",
        value="half_loss",
        interval=("half_loss_low", "half_loss_high"),
        filled="marked",
        open_label="not changed" if firm == "changed" else "not beyond controls",
        rows="row",
        series="run",
        x_scale="linear",
        caption="A mark stands where half of the way was done in one run, with its 95 % interval. "
        f"Filled: {firm}. Open: not so, or not judged. A run without a mark did not move.",
    )


def _along(figure: Figure, dimension: str) -> Iterator[Any]:
    """Give a figure over steps along another dimension, if it can be drawn there."""
    uses = [
        use
        for use in figure.dimensions
        if getattr(figure, use, None) in ("step", "step_")
    ]
    if dimension == "step" or not uses:
        yield figure
        return
    if any(getattr(figure, use) == "step_" for use in uses):
        return
    changes: dict[str, Any] = dict.fromkeys(uses, dimension)
    if isinstance(figure, Curves):
        changes |= {"boundaries": ()}
    yield dataclasses.replace(figure, **changes)


def _of_runs(figure: Any, data: xr.Dataset) -> Iterator[Figure]:
    """Give a figure with its runs, side by side where one cannot be compared with another."""
    if isinstance(figure, Table) and figure.group:
        for run in map(str, data["run"].values):
            yield dataclasses.replace(
                figure,
                id=f"{figure.id}-{run}",
                title=f"{figure.title} ({run})",
                select={**figure.select, "run": run},
            )
        return
    labels = {
        use: getattr(figure, use, None) for use in ("series", "facet", "rows", "y")
    }
    apart = any(name in NUMBERED for name in labels.values())
    crowded = (
        isinstance(figure, NullComparison)
        and data.sizes.get(figure.rows, 0) > MOST_ROWS
    )
    if isinstance(figure, Curves | NullComparison | Heatmap) and (apart or crowded):
        yield dataclasses.replace(figure, facet="run")
        return
    if isinstance(figure, Curves) and RUN not in figure.names():
        yield dataclasses.replace(figure, runs=RUN)
        return
    yield figure_of_runs(figure)


def _fits(figure: Figure, data: xr.Dataset) -> bool:
    """Return whether everything that a figure names is in the node."""
    try:
        attach(data, SectionWords("", ""), [figure])
    except ArgumentError:
        return False
    return True
