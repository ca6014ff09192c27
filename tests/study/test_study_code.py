"""After an edit of the library, a study computes again what can come out otherwise, and no more."""

import json
from pathlib import Path

import pytest

from helpers import warm_process
from helpers.paths import ROOT, environment

SOURCE = ROOT / "src" / "ontogeny"
BASE = "base"

# A fork for each copy of the library: what all import is imported once.
DRIVER = """
import contextlib, importlib.metadata, os, shutil, sys
import jinja2, numpy, pandas, scipy.stats, sklearn.decomposition, torch
import transformers.modeling_utils
import typer, xarray, zarr

with contextlib.suppress(ImportError):
    import dask.array  # xarray does, where it is

entry_points = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **k: (
    importlib.metadata.EntryPoints() if "ontogeny" in k.get("group", "") else entry_points(**k)
)
_, study, *copies = sys.argv
for copy in copies:
    sys.stdout.flush()
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert status == 0, (copy, status)
        continue
    sys.path.insert(0, copy)
    sys.argv = ["study", copy]
    exec(compile(study, "study", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()
    os._exit(0)
"""
STUDY = """
import json, pathlib, shutil, sys
import numpy as np, torch
import ontogeny as og

copy = pathlib.Path(sys.argv[1])
assert og.__file__.startswith(str(copy)), og.__file__
base, folder = copy.parent / "base" / "study", copy / "study"

class Tiny(torch.nn.Module):
    def __init__(self, step):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(20, 8)
        self.mlp = torch.nn.Linear(8, 8)
        with torch.no_grad():
            self.mlp.weight.mul_(1 + step)

    def forward(self, input_ids, attention_mask=None):
        return self.mlp(self.embed(input_ids))

class Notes:
    def __init__(self): self.lines, self.cells = [], 0
    def start(self, tasks, cells): self.cells = cells
    def advance(self, label, cells, seconds): ...
    def note(self, text): self.lines.append(text)
    def finish(self): ...

study = og.Study(
    og.Trajectory.from_models({step: Tiny(step) for step in (0, 1, 2, 4)}),
    og.Inputs.from_tokens(np.arange(1, 17).reshape(4, 4)),
    [
        og.observables.ActivationDecay(layers="mlp", max_tokens=16),
        og.observables.WeightNorms(blocks="mlp.weight"),
    ],
    device="cpu",
    noise=0,
)
if folder != base:
    shutil.copytree(base, folder)
plan, notes = study.plan(folder), Notes()
result = study.run(folder, progress=notes)
texts = [str(node.attrs.get("statements")) for node in map(result.__getitem__, result.tree)]
norms, decay = result["weight-norms"], result["activation-decay"]
(copy / "said.json").write_text(json.dumps({
    "cells": sorted({e.node for e in plan.entries if e.to_do}),
    "plan": [line for line in [*map(str, plan.notes), *plan.changes()] if "code" in line],
    "notes": notes.lines,
    "rank": norms.stable_rank.values.ravel().tolist(),
    "distance": decay.distance.values.ravel().tolist(),
    "half": norms.half_change_step.values.ravel().tolist(),
    "texts": texts,
}))
"""
NORMS, DECAY = ["weight-norms"], ["activation-decay"]
# By name: the file, what is replaced in it by what, and whose cells are computed again.
EDITS = {
    "helper": ("geometry/rank.py", "np.sum(", "2 * np.sum(", NORMS),
    "of-activations": ("distances/features.py", "def squared_distances(", None, DECAY),
    "observable": (
        "features/weights/norms.py",
        "float(energy.sum().sqrt())",
        "2 * float(energy.sum().sqrt())",
        NORMS,
    ),
    "summary": ("dynamics/half_change.py", "(0.5 - low)", "(0.25 - low)", []),
    "sentence": ("words/statements.py", "half of the change was over by", "half was over by", []),
    "docstring": (
        "features/weights/norms.py",
        "Return norm and stable rank, from",
        "Return the norm and the stable rank, of",
        [],
    ),
    "comment": (
        "geometry/rank.py",
        "    return float(np.sum(",
        "    # It.\n    return float(np.sum(",
        [],
    ),
    "error": ("features/weights/norms.py", "the weights hold NaN", "there is NaN", []),
    "feature": ("features/circuits/heads.py", "annotations\n", "annotations\n\nX = 1\n", []),
    "page": ("report/page/html.py", "annotations\n", "annotations\n\nX = 1\n", []),
    "capture": ("capture/reading.py", "\ndef read(", None, [*DECAY, *NORMS]),
}
WRAPPED = """

_of_before = {name}


def {name}(*args, **kwargs):
    return _of_before(*args, **kwargs)
"""


def _copy(place, file, old, new):
    """Lay out the library in `place` with one edited file: all others are links."""
    folder, here = place / "ontogeny", SOURCE
    folder.mkdir(parents=True)
    for part in [*Path(file).parts[:-1], None]:
        for entry in here.iterdir():
            if entry.name not in ("__pycache__", part, Path(file).name if part is None else part):
                (folder / entry.name).symlink_to(entry)
        if part is not None:
            folder, here = folder / part, here / part
            folder.mkdir()
    text = (SOURCE / file).read_text()
    assert old in text, (file, old)
    if new is None:  # the function is another one that gives the same
        name = old.removeprefix("\ndef ").removeprefix("def ").removesuffix("(")
        edited = text + WRAPPED.format(name=name)
    else:
        edited = text.replace(old, new)
    (folder / Path(file).name).write_text(edited)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a study says, and what it computes, before any edit and after each."""
    folder = tmp_path_factory.mktemp("copies")
    _copy(folder / BASE, "_version.py", "\n", "\n")
    for name, (file, old, new, _) in EDITS.items():
        _copy(folder / name, file, old, new)
    copies = [str(folder / name) for name in (BASE, *EDITS)]
    env = environment(PYTHONPATH="", XDG_CACHE_HOME=str(folder / "cache"))
    done = warm_process.run(["-c", DRIVER, STUDY, *copies], env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {name: json.loads((folder / name / "said.json").read_text()) for name in (BASE, *EDITS)}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_computes_again_what_it_can_change(said, edit):
    assert said[edit]["cells"] == sorted(EDITS[edit][3])


def test_new_code_gives_new_numbers(said):
    base = said[BASE]
    assert said["helper"]["rank"] != base["rank"]
    assert said["summary"]["half"] != base["half"] and said["summary"]["rank"] == base["rank"]
    assert said["sentence"]["texts"] != base["texts"]
    for edit in ("docstring", "comment", "error", "feature", "page", "capture"):
        for part in ("rank", "distance", "half", "texts"):
            assert said[edit][part] == pytest.approx(base[part], nan_ok=True), edit


def test_it_says_in_a_line_what_is_computed_again_and_why(said):
    assert "changed: the code of geometry (4 cells)" in said["helper"]["notes"]
    assert "the code of features.weights (4 cells)" in said["observable"]["plan"]
    assert "changed: the code of dynamics (2 summaries)" in said["summary"]["notes"]
    assert "changed: the code of words (2 summaries)" in said["sentence"]["plan"]
    for edit in ("docstring", "comment", "error", "feature", "page"):
        assert not [line for line in said[edit]["notes"] if "changed" in line]
