"""A feature is one folder: taken away in a copy of the library, all else works without it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import PAPERS, ROOT, environment
from ontogeny._exports import features

FOLDERS = [name.rpartition(".")[2] for name in features()]

# A study of whatever observables are left that need no more than weights, and its page.
STUDY = """
import sys, tempfile
from pathlib import Path
import numpy as np, torch
import ontogeny as og
from ontogeny.cli import main

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
study = og.Study(
    og.Trajectory.from_models({step: Tiny(step) for step in (0, 1, 2)}),
    og.Inputs.from_tokens(np.arange(1, 17).reshape(4, 4)),
    [og.observables.make(kind, **arguments)],
    device="cpu",
)
with tempfile.TemporaryDirectory() as folder:
    study.run(folder)
    page = og.open_study(folder).report(Path(folder) / "report.html")
    assert kind.split("-")[0] in Path(page).read_text("utf-8")
for command in (["list"], ["help", kind], ["--help"]):
    try:
        main(command)
    except SystemExit as done:
        assert not done.code, command
print("names:", *sorted(names))
"""


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_rest_works_without_a_feature(folder, tmp_path):
    package = tmp_path / "ontogeny"
    shutil.copytree(ROOT / "src" / "ontogeny", package, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.rmtree(package / "features" / folder)
    # The papers build on every feature; a copy without one is used as it is installed alone.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.metadata as m\n"
        "real = m.entry_points\n"
        "m.entry_points = lambda **k: m.EntryPoints() if k.get('group', '').startswith('ontogeny')"
        " else real(**k)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", STUDY, folder],
        env=environment(PYTHONPATH=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = done.stdout.splitlines()[-1].split()
    assert len(names) > 10


def test_every_feature_has_tests_under_its_name():
    tests = Path(__file__).parent
    assert [name for name in FOLDERS if not list((tests / name).glob("test_*.py"))] == []


def test_no_package_has_more_than_thirty_modules_on_one_level():
    crowded = {
        str(folder.relative_to(root)): count
        for root in (ROOT / "src", PAPERS / "src")
        for folder in root.rglob("*")
        if folder.is_dir() and (count := len(list(folder.glob("*.py")))) > 30
    }
    assert crowded == {}
