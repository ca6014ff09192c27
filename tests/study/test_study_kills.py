"""A study that is killed at random moments ends as if it never had been."""

import json
import os
import signal

import pytest
import xarray as xr

from helpers import warm_process
from helpers.paths import script
from helpers.study_examples import developing, record

KILLS = 8


def _files(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def _nodes(folder):
    tree = xr.open_datatree(folder / "result.zarr", engine="zarr")
    attrs = {k: v for k, v in tree.attrs.items() if k not in ("created", "provenance")}
    return {
        name: node.to_dataset().load() for name, node in tree.children.items()
    }, attrs


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs fork to start a study quickly"
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_killed_at_random_moments_it_gives_the_same_bits_and_leaves_nothing_behind(
    tmp_path,
):
    record(developing((0, 1, 2, 4)), tmp_path / "run")
    command = [script("killed_at_random.py"), tmp_path / "run", tmp_path, KILLS, 0]
    done = warm_process.run(command)
    assert done.returncode == 0, done.stderr
    statuses = [status for _, status in json.loads(done.stdout)]
    assert statuses == [-signal.SIGKILL] * KILLS + [0], done.stdout
    whole, attrs = _nodes(tmp_path / "whole")
    found, found_attrs = _nodes(tmp_path / "killed")
    assert found.keys() == whole.keys() and found_attrs == attrs
    for name, data in whole.items():
        xr.testing.assert_identical(found[name], data)
    assert _files(tmp_path / "killed") == _files(tmp_path / "whole")
