"""Results of studied runs made up for tests, judged by the summary as studies are."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import xarray as xr

from ontogeny.figures import Section
from ontogeny.quantities import Quantity
from ontogeny.summary.summarise import summarise

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)

LOSS = Quantity(
    "loss", "loss on fixed texts", units="nats per token", rows="loss", better="lower"
)
ENTROPY = Quantity(
    "entropy", "attention entropy", units="bits", rows="{layer} · attention entropy"
)


def fallen(steps, half, start=8.0, end=4.0):
    """From `start` to `end`, half-way at step `half`."""
    steps = np.asarray(steps, dtype=float)
    return end + (start - end) * half / (half + steps)


def run(
    half=20.0,
    seed=0,
    steps=STEPS,
    layers=3,
    name="model.layers.{}.attn",
    controls=False,
    fingerprint="a" * 32,
    loss=None,
    **attributes,
):
    """Return the result of one study: a loss and an entropy for each layer, each known to 0.02."""
    steps = np.asarray(steps)
    values = fallen(steps, half) if loss is None else np.asarray(loss, dtype=float)
    places = tuple(steps.tolist())
    made = _nodes(half, seed, places, layers, name, bool(controls), tuple(values))
    nodes = {node: data.copy(deep=True) for node, data in made.items()}
    tree = xr.DataTree.from_dict({"/": xr.Dataset(), **nodes})
    tree.attrs = {
        "title": "A made-up run",
        "steps": json.dumps(steps.tolist()),
        "reference_step": int(steps[-1]),
        "findings": "[]",
        "problems": "[]",
        "controls": json.dumps([{"name": "turned 0"}] if controls else []),
        "inputs": json.dumps(
            [{"name": "text", "fingerprint": fingerprint, "texts": 40, "tokens": 338}]
        ),
        "settings": json.dumps(
            {
                "dtype": "float32",
                "reference": "last",
                "observables": {"loss": {"kind": "loss", "objective": "causal"}},
            }
        ),
        "trajectory": json.dumps({"digests": {str(s): f"{seed}-{s}" for s in steps}}),
        "model": json.dumps({"class": "GPT2LMHeadModel", "parameters": 5200}),
        **attributes,
    }
    return tree


@cache
def _nodes(half, seed, steps, layers, name, controls, values):
    """Return what a study measured: many tests ask for the same."""
    steps = np.array(steps)
    node = xr.Dataset(
        {"loss": ("step", np.array(values)), "loss_stderr": 0.02}, {"step": steps}
    )
    losses = summarise(node, [LOSS], Section("Loss", "Mean loss."), role="track")
    paths = [name.format(i) for i in range(layers)]
    rng = np.random.default_rng(seed)
    curves = np.stack(
        [fallen(steps, half * 2 ** (1 + i), 3, 1) for i in range(layers)], axis=1
    )
    curves += 0.002 * rng.normal(size=curves.shape)
    node = xr.Dataset(
        {"entropy": (("step", "layer"), curves), "entropy_stderr": 0.02},
        {"step": steps, "layer": paths},
    )
    entropies = summarise(
        node, [ENTROPY], Section("Attention entropy", "Mean entropy.")
    )
    return {
        node: judged(data, controls).assign_attrs(reference_step=int(steps[-1]))
        for node, data in (("loss", losses), ("attention-entropy", entropies))
    }


def judged(data, controls):
    """Give rows the verdicts that a study with controls gives: only the loss was learned."""
    if "changed" not in data:  # one checkpoint has no rows
        return data
    changed = data.changed.values.astype(bool)
    beyond = changed & controls
    learned = beyond & (data.row_quantity.values == "loss")
    verdicts = {"changed": changed, "beyond": beyond, "learned": learned}
    return data.assign({name: ("row", values) for name, values in verdicts.items()})


def seeds(count=3, **options):
    """Return runs that differ in their seed and a little in their pace."""
    return {f"seed {i}": run(20.0 + 3 * i, seed=i, **options) for i in range(count)}
