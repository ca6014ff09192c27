"""Several processes that run one study in one folder at once, as tasks of a batch job do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

import ontogeny as og
from study_examples import developing, observables, record, tiny_inputs

HERE = Path(__file__).parent
STEPS = (0, 1, 2, 4, 8)


def _values(folder):
    tree = xr.open_datatree(folder / "result.zarr", engine="zarr")
    assert tree.attrs["problems"] == "[]"
    return {name: node.to_dataset().load() for name, node in tree.children.items()}


@pytest.mark.slow
def test_processes_in_one_folder_do_not_disturb_each_other(tmp_path):
    run, shared = tmp_path / "run", tmp_path / "shared"
    trajectory = record(developing(STEPS), run)
    environment = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "killed_study.py"), str(run), str(shared)]
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    study = og.Study(trajectory, tiny_inputs(), observables(), device="cpu")
    study.run(tmp_path / "alone")
    errors = [process.communicate()[1].decode() for process in started]
    assert [process.returncode for process in started] == [0, 0], errors
    expected, found = _values(tmp_path / "alone"), _values(shared)
    assert found.keys() == expected.keys()
    for name, data in expected.items():
        xr.testing.assert_identical(found[name], data)
    left = [p for p in shared.rglob("*") if p.name.endswith((".tmp", ".new"))]
    assert left == []
