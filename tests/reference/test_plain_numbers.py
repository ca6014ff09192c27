"""Every number on the page of ten odd models beside a plain implementation of its definition."""

from pathlib import Path

import numpy as np
import torch

from reference.odd_models import MODELS, write_run
from reference.plain.run import Run
from reference.studied import studied

HERE = Path(__file__).parent
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}

# What is not compared, by node and variable, and why.
NOT_COMPARED = {
    r".*:status": "says that a cell is there",
    r".*:.*_text|.*:prompt|.*:group_of_.*|.*:left_out": "words",
}


def _labels(tree, nodes):
    found = [tree[node].layer.values.tolist() for node in nodes if node in tree.children]
    return list(dict.fromkeys(str(label) for labels in found for label in labels))


def _page(name, folder):
    odd = MODELS[name]
    write_run(odd, folder)
    tree, left_out = studied(odd, folder)
    layers = ("activation-decay", "effective-dimensions", "similarity", "concepts-svd")
    run = Run(odd, folder, _labels(tree, layers), _labels(tree, ["attention-entropy"]))
    return odd, tree, left_out, run


def _differences(found, data, tolerance):
    lines = []
    for name, (dims, values) in found.items():
        if name not in data:
            lines.append(f"{name}: not on the page")
            continue
        given = data[name].transpose(*dims).values.astype(float)
        values = np.asarray(values, dtype=float)
        size = np.nanmax(np.abs(values), initial=0.0, where=np.isfinite(values))
        if given.shape != values.shape:
            lines.append(f"{name}: {given.shape} on the page, {values.shape} plain")
        elif not np.allclose(given, values, tolerance, tolerance * size, equal_nan=True):
            apart = np.nanmax(np.abs(given - values))
            lines.append(f"{name}: {apart:.3g} apart, of {size:.3g}")
    return lines
