"""What a study answers first: which run there is, before anything of it is tried."""

import subprocess
import sys

import numpy as np
import pytest

import ontogeny as og
from helpers.command import call
from helpers.study_examples import developing, record
from ontogeny.errors import ArgumentError
from ontogeny.start import proposal
from ontogeny.start.opened import Opened
from ontogeny.start.wishes import Wishes


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("found") / "run"
    record(developing((0, 1, 2)), folder)
    return folder


def test_the_line_has_the_numbers_and_bytes_of_the_last_checkpoint(run):
    line = Opened.of(Wishes(str(run))).line
    weights = og.Trajectory.from_folder(run)[2].model().state_dict().values()
    assert line.startswith("3 checkpoints, steps 0 to 2")
    assert f"{sum(w.numel() for w in weights):,} numbers" in line


@pytest.mark.parametrize("command", ["study", "init"])
def test_what_there_is_is_said_before_anything_is_tried(
    command, run, tmp_path, monkeypatch, capsys
):
    def tried(*_):
        raise ArgumentError("it is tried now.")

    monkeypatch.setattr(proposal, "look", tried)
    monkeypatch.chdir(tmp_path)
    np.save("ids.npy", np.arange(60).reshape(6, 10))
    code, out, err = call(capsys, command, run, "--texts", "ids.npy")
    assert code == 1 and "it is tried now" in err
    assert f"found in {run}: 3 checkpoints" in out


@pytest.mark.parametrize("output", [".", "..", "/"])
def test_a_folder_without_a_name_is_refused(output, run, capsys):
    code, out, err = call(capsys, "study", run, "--output", output)
    assert code == 1 and f"--output {output} has no name" in err and not out


def test_what_finds_a_run_loads_nothing_that_only_tries_it():
    code = "import sys, ontogeny.cli.runs; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "torch" in loaded  # which reads files
    slow = ("transformers", "xarray", "pandas", "scipy", "zarr", "ontogeny.study")
    assert not set(slow) & set(loaded)
