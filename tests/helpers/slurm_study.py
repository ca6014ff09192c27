"""A study as users of a cluster have it, in a file, and what its folder holds afterwards."""

import json

import numpy as np

from helpers.study_examples import LAYERS, developing, record
from ontogeny.store import read_header

FILE = f"""
[trajectory]
folder = "run"
[inputs]
tokens = "tokens.npy"
[options]
device = "cpu"
[[observables]]
kind = "activation-decay"
layers = "{LAYERS}"
[[observables]]
kind = "weight-rank"
n_draws = 4
"""


def write_study(folder, steps=(0, 1, 2, 4, 8, 16)):
    """Write a run, its inputs and a study file; return the file."""
    record(developing(steps), folder / "run")
    np.save(folder / "tokens.npy", np.random.default_rng(0).integers(4, 40, (24, 12)))
    path = folder / "study.toml"
    path.write_text(FILE)
    return path


def assert_same(folder, other):
    """Check that two folders have the same cells, and the same Zarr files but for their time."""
    cells, expected = _cells(folder), _cells(other)
    assert cells == expected and len(cells) > 10
    one, two = map(_files, (folder, other))
    assert one == two and len(one) > 10


def _files(folder):
    listed = json.loads((folder / "result.zarr" / ".checksums.json").read_text())
    # The time stands in the attributes of the root.
    return {
        n: f for n, f in listed["files"].items() if n not in (".zattrs", ".zmetadata")
    }


def _cells(folder):
    return {
        str(path.relative_to(folder)): read_header(path)["checksum"]
        for room in ("cells", "states", "summaries")
        for path in (folder / room).rglob("*.safetensors")
    }
