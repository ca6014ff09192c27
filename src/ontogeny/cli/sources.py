"""What a command is pointed at: one model, a folder, or a repository on the Hub."""

from __future__ import annotations

from typing import Any

from torch import nn

from ..start.source import open_source
from ..trajectory.trajectory import Trajectory


def open_trajectory(source: str, model: str = "", **choice: Any) -> Trajectory:
    """Return the trajectory of a folder or, where there is none, of a Hub repository.

    `model` names a function of the user's that builds the module, such as ``"model.py:build"``;
    `choice` is what is said of a folder's files.

    Raises
    ------
    ArgumentError, CheckpointError
        If there is neither, or it holds no checkpoints.
    """
    return open_source(source, _built_by(model), choice)


def open_model(source: str, model: str = "") -> nn.Module:
    """Return the model of a folder, or that of the last checkpoint of folder or repository.

    Raises
    ------
    ArgumentError, CheckpointError
        If there is no model.
    """
    trajectory = open_trajectory(source, model)
    return trajectory[int(trajectory.steps[-1])].model()


def _built_by(model: str) -> Any:
    from ..own_code import load

    return load(model) if model else None
