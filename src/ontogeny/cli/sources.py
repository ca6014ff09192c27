"""What a command is pointed at: one model, a folder, or a repository on the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..errors import ArgumentError
from ..start.source import is_repository, open_source
from ..trajectory.trajectory import Trajectory
from ..trajectory.weights.building import Template, check_dtype, check_template


def load_model(
    source: str | Path,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    model: Template | None = None,
) -> nn.Module:
    """Return a fresh module in eval mode from a model, or from the last step of a trajectory.

    Parameters
    ----------
    source
        A folder with config.json and weights, one with checkpoints, or one file of weights.
    device, dtype
        Where the tensors go, and their floating-point dtype (None keeps the stored one).
    model
        For a module that is not of transformers: the module, or a function that builds it.

    Raises
    ------
    ArgumentError
        If there is no `source`.
    CheckpointError
        If there is no model, or any weight is missing, newly initialised or of another shape.

    Examples
    --------
    >>> import tempfile
    >>> from ontogeny import Recorder
    >>> folder = tempfile.mkdtemp()
    >>> Recorder(folder)(0, nn.Linear(3, 2))
    True
    >>> load_model(folder, model=nn.Linear(3, 2))
    Linear(in_features=3, out_features=2, bias=True)
    """
    check_template(model)
    check_dtype(dtype)
    folder = Path(source).expanduser().resolve()
    if not folder.exists():
        raise ArgumentError(f"{source} is neither a folder nor a file.")
    trajectory = Trajectory.from_folder(folder, model)
    return trajectory[int(trajectory.steps[-1])].model(device, dtype)


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
    if is_repository(source):
        trajectory = open_trajectory(source, model)
        return trajectory[int(trajectory.steps[-1])].model()
    return load_model(source, model=_built_by(model))


def _built_by(model: str) -> Any:
    from ..own_code import load

    return load(model) if model else None
