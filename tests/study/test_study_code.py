"""After an edit of the library, a study computes again what can come out otherwise, and no more."""

import json
from pathlib import Path

import pytest

from helpers import warm_process
from helpers.paths import ROOT, environment

pytestmark = pytest.mark.slow

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
texts = [str(node.attrs.get("statements")) for node in map(result.__getitem__, result)]
norms, decay = result["weight-norms"], result["activation-decay"]
(copy / "said.json").write_text(json.dumps({
    "cells": sorted({e.node for e in plan.entries if e.to_do}),
    "plan": [line for line in [*map(str, plan.notes), *plan.changes()] if "code" in line],
    "notes": notes.lines,
    "rank": norms.stable_rank.values.ravel().tolist(),
    "distance": decay.distance.values.ravel().tolist(),
    "half": decay.half_step.values.ravel().tolist(),
    "texts": texts,
}))
"""
NORMS, DECAY = ["weight-norms"], ["activation-decay"]
# By name: in which files what is replaced by what, and whose cells are computed again.
EDITS = {
    "helper": ([("geometry/rank.py", "np.sum(", "2 * np.sum(")], NORMS),
    "observable": (
        [("features/weights/norms.py", "float(energy.sum()", "2 * float(energy.sum()")],
        NORMS,
    ),
    "reading": ([("capture/reading.py", "\ndef read(", None)], [*DECAY, *NORMS]),
    "summary": ([("dynamics/half_change.py", "(0.5 - low)", "(0.25 - low)")], []),
    "sentence": (
        [("words/catalogue/sentences.py", "too few checkpoints", "not enough")],
        [],
    ),
    "words": (
        [
            (
                "features/weights/norms.py",
                "Return norm and stable rank, from",
                "Return both, of",
            ),
            (
                "geometry/rank.py",
                "    return float(np.sum(",
                "    # It.\n    return float(np.sum(",
            ),
            ("arrays.py", "must be", "has to be"),
        ],
        [],
    ),
    "elsewhere": (
        [
            ("features/circuits/heads.py", "annotations\n", "annotations\n\nX = 1\n"),
            ("report/page/html.py", "annotations\n", "annotations\n\nX = 1\n"),
        ],
        [],
    ),
}
WRAPPED = """

_of_before = {name}


def {name}(*args, **kwargs):
    return _of_before(*args, **kwargs)
"""


def _copy(place, edits):
    """Lay out the library in `place` with edited files: all others are links."""
    edited = {Path(file): (old, new) for file, old, new in edits}
    folders = {Path(), *(parent for file in edited for parent in file.parents)}
    for folder in sorted(folders):
        (place / "ontogeny" / folder).mkdir(parents=True, exist_ok=True)
        for entry in (SOURCE / folder).iterdir():
            inner = entry.relative_to(SOURCE)
            if (
                entry.name != "__pycache__"
                and inner not in folders
                and inner not in edited
            ):
                (place / "ontogeny" / inner).symlink_to(entry)
    for file, (old, new) in edited.items():
        text = (SOURCE / file).read_text()
        assert old in text, (file, old)
        if new is None:  # the function is another one that gives the same
            name = old.removeprefix("\ndef ").removesuffix("(")
            text += WRAPPED.format(name=name)
        (place / "ontogeny" / file).write_text(
            text if new is None else text.replace(old, new)
        )


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a study says, and what it computes, before any edit and after each."""
    folder = tmp_path_factory.mktemp("copies")
    _copy(folder / BASE, [])
    for name, (edits, _) in EDITS.items():
        _copy(folder / name, edits)
    copies = [str(folder / name) for name in (BASE, *EDITS)]
    env = environment(PYTHONPATH="", XDG_CACHE_HOME=str(folder / "cache"))
    done = warm_process.run(["-c", DRIVER, STUDY, *copies], env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {
        name: json.loads((folder / name / "said.json").read_text())
        for name in (BASE, *EDITS)
    }


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_computes_again_what_it_can_change(said, edit):
    assert said[edit]["cells"] == sorted(EDITS[edit][1])


def test_new_code_gives_new_numbers(said):
    base = said[BASE]
    assert said["helper"]["rank"] != base["rank"]
    assert (
        said["summary"]["half"] != base["half"]
        and said["summary"]["rank"] == base["rank"]
    )
    # No result holds a sentence on its rows: they are made where they are read.
    for edit in ("words", "elsewhere", "reading", "sentence"):
        for part in ("rank", "distance", "half", "texts"):
            assert said[edit][part] == pytest.approx(base[part], nan_ok=True), edit


def test_it_says_in_a_line_what_is_computed_again_and_why(said):
    [line] = [
        note
        for note in said["helper"]["notes"]
        if note.startswith("changed: the code of")
    ]
    assert line == "changed: the code of geometry (4 cells)"  # and of none who calls it
    assert "the code of features.weights (4 cells)" in said["observable"]["plan"]
    assert "changed: the code of dynamics (2 summaries)" in said["summary"]["notes"]
    for edit in ("words", "elsewhere"):
        assert not [line for line in said[edit]["notes"] if "changed" in line]
