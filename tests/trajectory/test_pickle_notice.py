"""That weights are pickled is said once, however many files there are."""

from __future__ import annotations

import logging

import torch
from torch import nn

from ontogeny import Trajectory
from ontogeny.trajectory.weights import announced


def test_pickled_weights_are_announced_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(announced, "topics", set())
    for step in range(3):
        folder = tmp_path / f"step-{step}"
        folder.mkdir()
        torch.save({"weight": torch.ones(2)}, folder / "lit_model.pth")
    with caplog.at_level(logging.WARNING, logger="ontogeny"):
        run = Trajectory.from_folder(tmp_path, nn.Module)
        for checkpoint in run:
            with checkpoint.open() as reader:
                assert reader.names() == ["weight"]
    (line,) = [r.getMessage() for r in caplog.records if "pickled" in r.getMessage()]
    assert line.startswith(f"weights such as {tmp_path / 'step-0'}")


def write_with_value_head(folder):
    folder.mkdir()
    for step in range(3):
        head = {f"v_head.{n}.weight": torch.ones(1) for n in range(7)}
        inside = {
            f"inner.{name}": t for name, t in nn.Linear(1, 1).state_dict().items()
        }
        torch.save({**inside, **head}, folder / f"step-{step}.pt")


def read_all(folder):
    """Read a run's checkpoints, by themselves and into one module."""
    run = Trajectory.from_folder(folder, lambda: nn.Linear(1, 1))
    skeleton = run.skeleton()
    for checkpoint in run:
        checkpoint.model()
        skeleton.load(checkpoint)


def test_tensors_beside_the_model_are_said_once_of_each_run(
    tmp_path, caplog, monkeypatch
):
    """TRL saves a value head beside the model: the same line came for each checkpoint."""
    monkeypatch.setattr(announced, "topics", set())
    for number in (1, 2):
        write_with_value_head(tmp_path / f"run {number}")
        read_all(tmp_path / f"run {number}")
        read_all(tmp_path / f"run {number}")
        lines = [r.getMessage() for r in caplog.records if "no part" in r.getMessage()]
        assert len(lines) == number
        assert "beside inner.*" in lines[-1] and "(5 of 7)" in lines[-1]


def test_worker_processes_say_what_they_may_be_the_first_to_read(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(announced, "topics", set())
    monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
    write_with_value_head(tmp_path / "run")
    read_all(tmp_path / "run")
    (line,) = [r.getMessage() for r in caplog.records]
    assert "no part of this model" in line
