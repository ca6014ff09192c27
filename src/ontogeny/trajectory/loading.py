"""One model, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..errors import ArgumentError
from .trajectory import Trajectory
from .weights.building import Template, check_dtype, check_template


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
