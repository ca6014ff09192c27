"""Curves as a node of a study's result, and what an observable of curves says of them."""

import json

import numpy as np
import xarray as xr

from helpers.series_examples import LATE

PATHS = [f"layers.{i}.mlp" for i in range(4)]


def node(values, steps=LATE, name="curve"):
    """Curves (layers, T) as an observable's stacked cells; the last step is the reference."""
    table = values.T.copy()
    table[-1] = 0.0
    return xr.Dataset(
        {name: (("step", "layer"), table)},
        coords={"step": steps.astype(np.int64), "layer": PATHS},
        attrs={"reference_step": int(steps[-1])},
    )


def judged(observable, data, nodes=None):
    """What an observable says of a node's curves, as a study's merge asks it."""
    others = dict(nodes or {})
    node = data.rename({n: observable.variable for n in data.data_vars if n == "curve"})
    others[observable.of] = node.merge(others.get(observable.of, xr.Dataset()))
    empty = xr.Dataset(coords={"step": []}, attrs=data.attrs)
    return observable.summarise(empty, others)


def words(data):
    return " ".join(json.loads(data.attrs["statements"]))


def noisy(variable, floors):
    """A node whose variable has errors that give these noises of a difference."""
    errors = np.array(floors) / (1.96 * np.sqrt(2))
    return xr.Dataset(
        {f"{variable}_stderr": ("layer", errors)}, coords={"layer": PATHS}
    )
