"""That weights are pickled is said once, however many files there are."""

from __future__ import annotations

import logging

import torch
from torch import nn

from ontogeny import Trajectory
from ontogeny.trajectory.weights import pickled


def test_pickled_weights_are_announced_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(pickled, "_announced", [])
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
