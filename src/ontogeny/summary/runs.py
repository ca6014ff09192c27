"""Several runs as one more dimension: runs and controls side by side.

Observables know nothing of runs. Their quantities hold along a dimension ``run`` as they do along
``step``: every run has its own noise, rows and verdicts, and figures draw one line a run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr


def stack_runs(nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the same node of several runs along ``run``, without a change of any number.

    Parameters
    ----------
    nodes
        By the name of the run. Steps and labels that a run lacks hold NaN, an empty text, or
        False; steps stand in their order, other labels in that of their first appearance.
        Dimensions without labels are joined by place.

    Returns
    -------
    xarray.Dataset
        Every variable of any run over ``run`` and its own dimensions, with the attributes of the
        first run that has it, and ``reference_step`` where all runs share it.

    Examples
    --------
    >>> runs = {
    ...     "a": xr.Dataset({"x": ("step", [4.0, 2.0])}, {"step": [0, 2]}),
    ...     "b": xr.Dataset({"x": ("step", [4.0, 3.0])}, {"step": [0, 1]}),
    ... }
    >>> stack_runs(runs).x.values.tolist()
    [[4.0, nan, 2.0], [4.0, 3.0, nan]]
    """
    pieces = [_numbered(node).expand_dims(run=[label]) for label, node in nodes.items()]
    data = xr.concat(
        pieces,
        dim="run",
        join="outer",
        data_vars="all",
        coords="minimal",
        combine_attrs="drop",
        fill_value=_fills(pieces),
    )
    order = {}
    for dim in map(str, data.dims):
        if dim != "run" and dim.rstrip("_") != "step":
            labels = [
                np.atleast_1d(p[dim].values).tolist() for p in pieces if dim in p.coords
            ]
            order[dim] = list(dict.fromkeys(itertools.chain(*labels)))
    data = data.sel(order)
    unlabelled = [
        d for d in order if all(d not in node.coords for node in nodes.values())
    ]
    data = data.drop_vars(unlabelled)
    for name in data.variables:
        attrs = next((n[name].attrs for n in nodes.values() if name in n.variables), {})
        data[name].attrs.update(attrs)
    reference = {node.attrs.get("reference_step") for node in nodes.values()}
    if len(reference) == 1 and None not in reference:
        data.attrs["reference_step"] = reference.pop()
    return data


def _numbered(node: xr.Dataset) -> xr.Dataset:
    """Return a node whose dimensions all have labels: their places where they have none."""
    bare = [str(dim) for dim in node.dims if dim not in node.coords]
    return node.assign_coords({dim: np.arange(node.sizes[dim]) for dim in bare})


def _fills(pieces: Sequence[xr.Dataset]) -> dict[Any, Any]:
    """Return what stands where a run has nothing: NaN would turn texts and truths into objects."""
    fills = {"b": False, "O": "", "U": "", "T": "", "S": b""}
    of_names: dict[Any, Any] = {}
    for piece in pieces:
        for name, values in piece.data_vars.items():
            of_names[name] = fills.get(values.dtype.kind, np.nan)
    return of_names
