"""One node of several runs: its curves along ``run``, mean and spread, and its rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import xarray as xr

from ..errors import ArgumentError
from ..figures import Curves, Figure
from ..summary.runs import stack_runs
from ..words.labels import short_names
from .clock import Clock, LossClock
from .layers import match_layers, row_labels, with_layers
from .rows import rows_of_runs
from .sources import Run

# Dimensions of single texts, fits and neurons: left out unless a figure draws them.
SINGLE = (
    "text",
    "refit",
    "draw",
    "feature",
    "coordinate",
    "pair",
    "question",
    "answer",
    "example",
    "left_out",
)

TOKENS = {"text", "place"}  # dimensions of the tokens of a few texts that are shown


def node_of_runs(
    name: str, runs: Sequence[Run], clock: Clock
) -> tuple[xr.Dataset, list[Figure], str] | str:
    """Return a node of all runs, the figures that one run has of it, and how layers were matched.

    A text instead says why the node cannot be compared.
    """
    pieces = [_with_controls(run, run.nodes[name], name) for run in runs]
    words = ""
    if any("layer" in node.coords for node in pieces):
        layers = [node.get("layer", xr.DataArray([])).values for node in pieces]
        match = match_layers([list(map(str, np.atleast_1d(names))) for names in layers])
        if match is None:
            return f"{name!r} is left out: the layers of the runs could not be matched."
        pieces = [with_layers(node, match, i) for i, node in enumerate(pieces)]
        words = match.words
    figures = _figures(pieces)
    variables = {str(n) for figure in figures for n in figure.variables() if n}
    nodes = {
        run.name: _lean(node, variables) for run, node in zip(runs, pieces, strict=True)
    }
    rows = rows_of_runs(nodes, list(runs), clock)
    stays = isinstance(clock, LossClock) and clock.node == name
    along = Clock() if stays else clock
    curves = {
        run.name: along.place(nodes[run.name].drop_dims("row", errors="ignore"), run)
        for run in runs
    }
    data = stack_runs(curves)
    if stays:
        data = data.assign(step_at_loss=_step_at_loss(runs, clock))
        words_of = {"long_name": "first {checkpoint} at this loss", "units": "{step}s"}
        data["step_at_loss"].attrs.update(words_of)
    data = (
        data.merge(rows, compat="override", combine_attrs="override")
        if rows.sizes
        else data
    )
    if clock.dimension in data.coords:
        data[clock.dimension].attrs.update(long_name=clock.words)
    data = data.assign(means(data, _averaged(data, figures)))
    return _short(data), figures, words


def means(data: xr.Dataset, names: Iterable[str]) -> dict[str, xr.DataArray]:
    """Return the mean over runs of variables by name, with ``_sd``, and ``_low`` and ``_high``.

    ``x_mean`` and ``x_sd`` (n − 1 in the denominator) are NaN where a run has no value;
    ``x_mean_low`` and ``x_mean_high`` are mean ∓ SD.
    """
    averages: dict[str, xr.DataArray] = {}
    for name in dict.fromkeys(names):
        if (
            name not in data
            or "run" not in data[name].dims
            or data[name].dtype.kind not in "fiu"
        ):
            continue
        values = data[name].astype(float)
        mean = values.mean("run", skipna=False)
        sd = values.std("run", ddof=1, skipna=False)
        words = values.attrs.get("long_name", name)
        units = values.attrs.get("units", "")
        for end, value, what in (
            ("mean", mean, "mean"),
            ("sd", sd, "SD"),
            ("mean_low", mean - sd, "mean − SD"),
            ("mean_high", mean + sd, "mean + SD"),
        ):
            long_name = f"{words}, {what} over runs"
            averages[f"{name}_{end}"] = value.assign_attrs(
                long_name=long_name, units=units
            )
    return averages


def _averaged(data: xr.Dataset, figures: Sequence[Figure]) -> list[str]:
    """Return what is averaged: what curves draw and rows follow; without figures, all numbers."""
    curves = [figure for figure in figures if isinstance(figure, Curves)]
    names = [n for figure in curves for n in (figure.value, figure.relative) if n]
    names += (
        list(map(str, data["row_quantity"].values)) if "row_quantity" in data else []
    )
    if not figures:
        names += [
            str(n) for n, values in data.data_vars.items() if "row" not in values.dims
        ]
    return names


def _with_controls(run: Run, node: xr.Dataset, name: str) -> xr.Dataset:
    """Return a node whose controls lie along ``control``; ``run`` is for the runs."""
    if "run" not in node.dims:
        return node
    if not any("control" in str(variable) for variable in node.data_vars):
        raise ArgumentError(
            f"node {name!r} of run {run.name!r} holds several runs already."
        )
    return node.rename(run="control")


def _figures(nodes: Sequence[xr.Dataset]) -> list[Figure]:
    """Return the figures of the node as one run has it, each once; unknown kinds are left out."""
    figures: dict[str, Figure] = {}
    for node in nodes:
        for spec in json.loads(node.attrs.get("figures") or "[]"):
            try:
                figures.setdefault(str(spec.get("id")), Figure.from_dict(spec))
            except ArgumentError:
                continue
    return list(figures.values())


def _lean(node: xr.Dataset, variables: set[str]) -> xr.Dataset:
    """Return a node without single texts, refits and neurons, and without the status of cells."""
    # What is said of the same tokens stays with the numbers of tokens that a figure draws.
    of_tokens = any(
        set(node[name].dims) >= TOKENS for name in variables & set(node.data_vars)
    )
    kept = {
        str(name)
        for name, values in node.data_vars.items()
        if of_tokens and (set(values.dims) >= TOKENS or values.dims == ("text",))
    }
    dropped = [
        name
        for name, values in node.data_vars.items()
        if name == "status"
        or (set(values.dims) & set(SINGLE) and str(name) not in variables | kept)
    ]
    lean = node.drop_vars(dropped)
    used = set(chain.from_iterable(v.dims for v in lean.data_vars.values()))
    return lean.drop_dims([dim for dim in lean.dims if dim not in used])


def _step_at_loss(runs: Sequence[Run], clock: Clock) -> xr.DataArray:
    steps = {}
    for run in runs:
        at = xr.Dataset(
            {"step_at": ("step", run.steps.astype(float))}, {"step": run.steps}
        )
        steps[run.name] = clock.place(at, run)
    return stack_runs(steps)["step_at"]


def _short(data: xr.Dataset) -> xr.Dataset:
    """Return a node whose rows name layers in short."""
    if "row_layer" not in data:
        return data
    layers = [str(layer) for layer in data.row_layer.values]
    paths = [layer for layer in dict.fromkeys(layers) if layer]
    short = dict(zip(paths, short_names(paths), strict=True))
    labels = row_labels(data, [short.get(layer, "") for layer in layers])
    if len(set(labels)) < len(labels):
        return data
    return data.assign_coords(row=("row", np.array(labels, dtype=object)))
