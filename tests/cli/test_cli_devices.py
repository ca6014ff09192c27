"""``--devices``: which GPUs are taken, and how processes share them."""

import os
from types import SimpleNamespace

import pytest
import torch

import ontogeny as og
from helpers.command import call
from ontogeny.cli.devices import VISIBLE, Sharing, chosen_of
from ontogeny.errors import ArgumentError
from ontogeny.trajectory.weights.placed import Placed

HERE = ["4", "GPU-5", "6"]


@pytest.mark.parametrize(
    ("devices", "chosen"),
    [
        ("all", HERE),
        ("1", ["4"]),
        ("3", HERE),
        ("cuda:1", ["GPU-5"]),
        ("cuda:2, cuda:0", ["6", "4"]),
    ],
)
def test_gpus_are_those_that_the_process_may_use(devices, chosen, monkeypatch):
    assert chosen_of(devices, HERE) == chosen
    monkeypatch.setenv(VISIBLE, ",".join(HERE))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert Sharing.of(None, devices) == Sharing(None, len(chosen))
    assert os.environ[VISIBLE] == ",".join(chosen)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("0", "from 1 to the 3 GPUs"),
        ("4", "from 1 to the 3 GPUs that are here; got 4"),
        ("cuda:3", "cuda:0 to cuda:2, which are here; got 'cuda:3'"),
        ("cuda:1,cuda:1", "names cuda:1 twice"),
        ("cpu", "must be all, a number, or names"),
        ("cuda", "must be all, a number, or names"),
        ("-1", "must be all, a number, or names"),
        ("", "must be all, a number, or names"),
    ],
)
def test_others_are_refused_in_one_line(devices, message):
    with pytest.raises(ArgumentError, match=message):
        chosen_of(devices, HERE)


@pytest.mark.parametrize("command", ["study", "run"])
def test_without_a_gpu_the_command_says_so_before_anything_is_read(
    command, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv(VISIBLE, "")
    code, _, error = call(capsys, command, tmp_path / "none", "--devices", "2")
    assert code == 1
    assert "PyTorch sees none here; got '2'" in error


def test_gpus_of_the_environment_that_pytorch_cannot_use_are_refused(monkeypatch):
    monkeypatch.setenv(VISIBLE, ",".join(HERE))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ArgumentError, match=f"cannot use 4, GPU-5 of {VISIBLE}"):
        Sharing.of(None, "2")


@pytest.mark.parametrize(
    ("sharing", "processes", "line"),
    [
        (Sharing(), 4, ""),
        (Sharing(None, 1), 1, "devices: 1 GPU, one process"),
        (Sharing(None, 2), 2, "devices: 2 GPUs, 2 processes; each takes the next GPU"),
    ],
)
def test_one_line_says_what_devices_do(sharing, processes, line):
    assert sharing.line(spec(), processes) == line


def spec(device="cuda", template=None):
    run = og.Trajectory.from_models({0: torch.nn.Linear(2, 2)}, model=template)
    return SimpleNamespace(device=device, trajectory=run)


@pytest.mark.parametrize(
    ("sharing", "processes"),
    [(Sharing(None, 3), 3), (Sharing(6, 3), 6), (Sharing(2, 0), 2), (Sharing(), 5)],
)
def test_processes_share_the_gpus(sharing, processes):
    assert sharing.processes(spec(), usual=5) == processes


def test_one_process_fills_all_devices_with_a_model_larger_than_one():
    pytest.importorskip("accelerate")
    large = spec(template=Placed((("cpu", 1),)))
    assert Sharing(None, 3).processes(large, usual=5) == 1
    assert "accelerate places them" in Sharing(None, 3).line(large, 1)
    with pytest.raises(ArgumentError, match="got --workers 2"):
        Sharing(2, 3).processes(large)


def test_a_study_of_one_device_is_not_shared_out():
    with pytest.raises(ArgumentError, match="the study has 'cuda:1'"):
        Sharing(None, 2).processes(spec("cuda:1"))
