"""Results with a planted difference: runs that lie a known way apart, and controls of a run."""

import numpy as np
import xarray as xr

from ontogeny import figures

STEPS = (0, 1, 2, 4, 8, 16, 32, 64)
LAYERS = tuple(f"model.layers.{i}.mlp" for i in range(3))
READ = (0, 3, 5, 7)
"""Places of the steps at which control runs were read."""


def curve(layers=LAYERS, steps=STEPS):
    """A value for each step and layer, exact in binary."""
    return np.add.outer(np.arange(len(steps)) / 4.0, np.arange(len(layers)) / 2.0)


def tree_of(data, figure, **attrs):
    node = figures.attach(data, figures.Section("Entropy", "Mean entropy."), [figure])
    tree = xr.DataTree.from_dict({"entropy": node})
    tree.attrs = {"title": "Planted", **attrs}
    return tree


def compared(offsets, interval=None, missing=()):
    """Runs at constant offsets from a curve; ``missing`` holds pairs of places (run, step)."""
    values = np.stack([curve() + offset for offset in offsets])
    for run, step in missing:
        values[run, step] = np.nan
    dims = ("run", "step", "layer")
    held = {"entropy": (dims, values, {"long_name": "entropy", "units": "bits"})}
    ends = None
    if interval is not None:
        ends = ("entropy_low", "entropy_high")
        halves = np.asarray(interval)[:, None, None]
        held |= {ends[0]: (dims, values - halves), ends[1]: (dims, values + halves)}
    names = [f"seed {i}" for i in range(len(offsets))]
    data = xr.Dataset(held, {"run": names, "step": list(STEPS), "layer": list(LAYERS)})
    figure = figures.Curves(
        "entropy",
        "Entropy",
        value="entropy",
        caption="Low: few are attended to.",
        shade="±1.96 standard errors",
        interval=ends,
        runs="run",
    )
    return tree_of(data, figure)


def controlled(offsets, own=0.0, names=None, layers=LAYERS):
    """A run ``own`` above a curve, and controls at offsets from it, read at a few steps."""
    names = names or [f"turned {i}" for i in range(len(offsets))]
    run = curve(layers) + own
    controls = np.full((len(offsets), *run.shape), np.nan)
    for i, offset in enumerate(offsets):
        controls[i, list(READ)] = (curve(layers) + offset)[list(READ)]
    held = {
        "entropy": (("step", "layer"), run, {"long_name": "entropy", "units": "bits"}),
        "entropy_control": (("run", "step", "layer"), controls),
        "entropy_control_low": (("step", "layer"), filled(controls.min(0))),
        "entropy_control_high": (("step", "layer"), filled(controls.max(0))),
    }
    data = xr.Dataset(held, {"run": names, "step": list(STEPS), "layer": list(layers)})
    band = figures.Band(
        "entropy_control_low", "entropy_control_high", "control runs (turned)"
    )
    figure = figures.Curves("entropy", "Entropy", value="entropy", bands=[band])
    return tree_of(data, figure)


def filled(values):
    """Values between the steps that were read, as the summary fills them."""
    order = np.arange(len(values))
    known = np.isfinite(values[:, 0])
    return np.stack(
        [np.interp(order, order[known], v[known]) for v in values.T], axis=1
    )
