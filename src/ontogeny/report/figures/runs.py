"""Several runs in one figure: over one another, side by side, or what sets one of them apart.

They are the runs of a comparison, of which the reader chooses one, or a run and its control runs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from ...control_kinds import is_null
from ...figures import Curves, Heatmap
from ...quantities import CONTROL
from ...summary.controls import NUMBERED, RUN
from ...tails import t_limit
from ...words.formats import plain_text
from .drawable import CONTROL_STEP, Drawable, Runs

SIDE = "side by side"
DIFFERENCE = "difference"
MOST_PANELS = 12  # more small multiples become a menu

LINES = 6  # of more runs the others are a band instead of lines


def figure_with_runs(drawable: Drawable) -> Drawable:
    """Return a figure as it is drawn first: with runs, if it has any, over one another."""
    figure = drawable.figure
    if getattr(figure, "runs", None):
        names = [plain_text(name) for name in drawable.node.dataset[figure.runs].values]
        views = _views(drawable, len(names), figure.runs)
        counted = range(1, len(names))
        factor = 1.0 if len(counted) > 1 else math.nan
        return replace(views["overlay"], runs=Runs(names, {}, counted, factor, views))
    controls = _controls(drawable)
    if not controls:
        return drawable
    control_names = [
        plain_text(name) for name in next(iter(controls.values()))[RUN].values
    ]
    nulls = [i for i, name in enumerate(control_names, start=1) if is_null(name)]
    names = ["run", *(f"control: {name}" for name in control_names)]
    first = "run" if isinstance(drawable.figure, Heatmap) else "overlay"
    views = {first: drawable} | _views(drawable, len(names))
    runs = Runs(names, controls, nulls, _prediction_factor(len(nulls)), views)
    return replace(drawable, runs=runs) if nulls else drawable


def _prediction_factor(count: int) -> float:
    """Return how many standard deviations from the mean of `count` runs a further one may lie."""
    if count < 2:
        return math.nan
    return float(t_limit(0.025, count - 1) * math.sqrt(1 + 1 / count))


def _controls(drawable: Drawable) -> dict[str, xr.DataArray]:
    """Return the values of control runs for the figure's forms, at the steps they were read at."""
    figure = drawable.figure
    data = drawable.node.dataset
    if not isinstance(figure, Curves | Heatmap) or set(drawable.axes.values()) & {
        *NUMBERED,
        RUN,
    }:
        return {}
    controls = {}
    for name in filter(None, (figure.value, figure.relative)):
        values_of_run = drawable.selected(name)
        control = f"{name}_{CONTROL}"
        if control not in data or "step" not in values_of_run.dims:
            return {}
        values = drawable.selected(control)
        if {str(d) for d in values.dims} != {RUN, *map(str, values_of_run.dims)}:
            return {}
        values = values.isel(step=np.flatnonzero(_read_at(data)))
        if not np.isfinite(values.values).any():
            return {}
        controls[name] = values.rename(step=CONTROL_STEP).transpose(
            RUN, *(CONTROL_STEP if d == "step" else d for d in values_of_run.dims)
        )
    return controls


def _read_at(data: xr.Dataset) -> np.ndarray:
    """Return at which steps control runs of a node were read (T,): the same for all figures."""
    is_finite = np.zeros(data.sizes["step"], dtype=bool)
    for name, values in data.data_vars.items():
        if str(name).endswith(f"_{CONTROL}") and {RUN, "step"} <= set(values.dims):
            finite_rows = values.transpose("step", ...).values.reshape(
                len(is_finite), -1
            )
            is_finite |= np.isfinite(finite_rows).any(axis=1)
    return is_finite


def _views(drawable: Drawable, count: int, runs: str = "") -> dict[str, Drawable]:
    """Return the arrangements of a figure of `count` runs; `runs` is their dimension, if any.

    Lines or panels of the figure are panels where runs are drawn over one another, and lines where
    every run has a panel.
    """
    figure = drawable.figure
    if isinstance(figure, Heatmap):
        return {
            SIDE: _arranged(drawable, facet=RUN, count=count),
            DIFFERENCE: _arranged(drawable, facet=figure.facet),
        }
    lines = figure.series or figure.facet
    views = {
        SIDE: _arranged(drawable, series=lines, facet=RUN, count=count),
        DIFFERENCE: _arranged(drawable, series=None, facet=lines),
    }
    return (
        {"overlay": _arranged(drawable, series=RUN, facet=lines), **views}
        if runs
        else views
    )


def _arranged(drawable: Drawable, count: int = 0, **uses: Any) -> Drawable:
    """Return a figure with other uses of its dimensions; what is left over becomes a menu."""
    facet = uses["facet"]
    length = count or (len(drawable.axis(facet)) if facet else 0)
    if length > MOST_PANELS:
        uses["facet"] = None
    if "runs" in drawable.axes:
        uses["runs"] = None
    arranged = replace(drawable, figure=replace(drawable.figure, **uses))
    dims = [str(d) for d in drawable.selected(drawable.figure.value).dims if d != RUN]
    dims_left = [d for d in dims if d not in arranged.axes.values()]
    more = [RUN] if uses["facet"] is None and facet == RUN else []
    return replace(arranged, choose=[*dims_left, *more])
