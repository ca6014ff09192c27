"""What a command is pointed at: a folder, or a repository on the Hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

    from ..trajectory import Trajectory


_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def open_trajectory(source: str) -> Trajectory:
    """Return the trajectory of a folder or, where there is none, of a Hub repository.

    Raises
    ------
    ArgumentError, CheckpointError
        If there is neither, or it holds no checkpoints.
    """
    from ..trajectory import Trajectory

    if _is_repository(source):
        return Trajectory.from_hub(source)
    return Trajectory.from_folder(source)


def open_model(source: str) -> nn.Module:
    """Return the model of a folder, or that of the last checkpoint of folder or repository.

    Raises
    ------
    ArgumentError, CheckpointError
        If there is no model.
    """
    from ..trajectory import load_model

    if _is_repository(source):
        trajectory = open_trajectory(source)
        return trajectory[int(trajectory.steps[-1])].model()
    return load_model(source)


def _is_repository(source: str) -> bool:
    return not Path(source).expanduser().exists() and bool(_REPOSITORY.fullmatch(source))
