"""That weights are pickled is said once, however many files there are."""

from __future__ import annotations

import logging

import torch
from torch import nn

from ontogeny import Trajectory
from ontogeny.trajectory.weights import announced


def test_pickled_weights_are_announced_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(announced, "said", set())
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


def test_tensors_beside_the_model_are_said_once_with_their_number(tmp_path, caplog, monkeypatch):
    """TRL saves a value head beside the model: the same line came for each checkpoint."""
    monkeypatch.setattr(announced, "said", set())
    for step in range(3):
        head = {f"v_head.{n}.weight": torch.ones(1) for n in range(7)}
        inside = {f"inner.{name}": t for name, t in nn.Linear(1, 1).state_dict().items()}
        torch.save({**inside, **head}, tmp_path / f"step-{step}.pt")
    run = Trajectory.from_folder(tmp_path, lambda: nn.Linear(1, 1))
    for checkpoint in run:
        checkpoint.model()
    (line,) = [r.getMessage() for r in caplog.records if "no part" in r.getMessage()]
    assert "beside inner.*" in line and "(5 of 7)" in line
