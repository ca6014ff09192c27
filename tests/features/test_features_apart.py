"""A feature is one folder: taken away in a copy of the library, all else works without it."""

from pathlib import Path

import pytest

from helpers import warm_process
from helpers.paths import PAPERS, ROOT, environment
from ontogeny._exports import features

pytestmark = pytest.mark.slow

FEATURES = ROOT / "src" / "ontogeny" / "features"
FOLDERS = [name.rpartition(".")[2] for name in features()]

# What all copies import is imported once, in the process that each copy's own is forked from.
DRIVER = """
import contextlib, importlib.metadata, os, sys
import jinja2, numpy, pandas, scipy.stats, sklearn.decomposition, torch
import transformers.modeling_utils
import sklearn.cluster, typer, xarray, zarr

with contextlib.suppress(ImportError):
    import dask.array  # xarray does, where it is

# The papers build on every feature; a copy without one is used as it is installed alone.
entry_points = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **k: (
    importlib.metadata.EntryPoints() if "ontogeny" in k.get("group", "") else entry_points(**k)
)
_, study, *copies = sys.argv
for copy in copies:
    sys.stdout.flush()
    child = os.fork()
    if child:
        print("ended", os.path.basename(copy), os.waitpid(child, 0)[1])
        continue
    sys.path.insert(0, copy)
    sys.argv = ["study", os.path.basename(copy)]
    exec(compile(study, "study", "exec"), {"__name__": "__main__"})
    sys.exit()
"""
# A study of whatever observables are left that need no more than weights, its page, and the
# comparison of two runs: that one failed without abilities, and without concepts.
STUDY = """
import sys, tempfile
from pathlib import Path
import numpy as np, torch
import ontogeny as og
from ontogeny.cli import main

assert og.__file__.startswith(sys.path[0]), og.__file__

class Tiny(torch.nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = torch.nn.Embedding(20, 8)
        self.mlp = torch.nn.Linear(8, 8)

    def forward(self, input_ids, attention_mask=None):
        return self.mlp(self.embed(input_ids))

gone = sys.argv[1]
names = set(og.observables.names())
kind, arguments = "activation-decay", {"layers": "mlp"}
if gone == "activations":
    kind, arguments = "weight-norms", {"blocks": "mlp.weight"}

def study(seed):
    return og.Study(
        og.Trajectory.from_models({step: Tiny(seed + step) for step in (0, 1, 2)}),
        og.Inputs.from_tokens(np.arange(1, 17).reshape(4, 4)),
        [og.observables.make(kind, **arguments)],
        device="cpu",
    )

with tempfile.TemporaryDirectory() as folder:
    runs = {name: study(seed).run(Path(folder) / name) for name, seed in (("a", 0), ("b", 9))}
    page = og.open_study(Path(folder) / "a").report(Path(folder) / "report.html")
    assert kind.split("-")[0] in Path(page).read_text("utf-8")
    both = og.compare(runs)
    assert kind in both and both[kind].sizes["run"] == 2
    page = both.report(Path(folder) / "both.html")
    assert kind.split("-")[0] in Path(page).read_text("utf-8")
for command in (["list"], ["help", kind], ["--help"]):
    try:
        main(command)
    except SystemExit as done:
        assert not done.code, command
assert len(names) > 10, names
"""


def without(folder, place):
    """Lay out the library in `place` without a feature: links, so that nothing is compiled anew."""
    package = place / "ontogeny"
    (package / "features").mkdir(parents=True)
    for entry in (ROOT / "src" / "ontogeny").iterdir():
        if entry.name not in ("features", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    for entry in FEATURES.iterdir():
        if entry.name != folder:
            (package / "features" / entry.name).symlink_to(entry)
    return place


def test_the_rest_works_without_any_one_feature(tmp_path):
    copies = [str(without(folder, tmp_path / folder)) for folder in FOLDERS]
    env = environment(PYTHONPATH="")
    done = warm_process.run(["-c", DRIVER, STUDY, *copies], env=env, cwd=tmp_path)
    lines = [
        line.split() for line in done.stdout.splitlines() if line.startswith("ended ")
    ]
    ended = {folder: status for _, folder, status in lines}
    assert ended == dict.fromkeys(FOLDERS, "0"), done.stderr


def test_every_feature_has_tests_under_its_name():
    tests = Path(__file__).parent
    assert [
        name for name in FOLDERS if not list((tests / name).glob("test_*.py"))
    ] == []


def test_no_package_has_many_more_than_thirty_modules_on_one_level():
    crowded = {
        str(folder.relative_to(root)): count
        for root in (ROOT / "src", PAPERS / "src")
        for folder in root.rglob("*")
        if folder.is_dir() and (count := len(list(folder.glob("*.py")))) > 34
    }
    assert crowded == {}
