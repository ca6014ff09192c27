"""Runs whose models are larger than one device."""

from __future__ import annotations

import math
import shutil
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ..errors import ArgumentError
from .checkpoint import Checkpoint
from .weights.configuration import read_configuration
from .weights.placed import Placed, fits_one, room_here

if TYPE_CHECKING:
    from .trajectory import Trajectory


def placed(
    run: Trajectory, dtype: torch.dtype | None = None, device: str = "cuda"
) -> Trajectory:
    """Return the run with models that accelerate places, if its weights do not fit on one device.

    A device that has less than a third beyond them counts as too small. That is memory where
    there is no GPU or `device` is the CPU. Files hold the rest. Each number is the same to the
    last bit.

    Raises
    ------
    ArgumentError
        If accelerate is not installed, a model is not one that transformers makes of a
        configuration, or there is no room for its weights.
    """
    room = room_here(device)
    size = weight_bytes(run[int(run.steps[-1])], dtype)
    if fits_one(size, room):
        return run
    for checkpoint in run:
        _check_own(checkpoint)
    left = size - sum(room.values())
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if left > free:
        raise ArgumentError(
            f"the model fits nowhere: of its {size / 1e9:.3g} GB of weights, devices and memory "
            f"hold {sum(room.values()) / 1e9:.3g} GB, and {tempfile.gettempdir()} has "
            f"{free / 1e9:.3g} GB for the rest; take more devices, or "
            'weights = "streamed" under [options].'
        )
    template = Placed(tuple(room.items()), dtype)
    checkpoints = tuple(replace(c, template=template) for c in run.checkpoints)
    return replace(run, checkpoints=checkpoints)


def weight_bytes(checkpoint: Checkpoint, dtype: torch.dtype | None = None) -> int:
    """Return the bytes of a model's weights, in this precision; None: as they are stored.

    Of one that is not downloaded, the bytes of its files.
    """
    if not checkpoint.is_downloaded and checkpoint.source is not None:
        return int(checkpoint.source.size())
    with checkpoint.open() as reader:
        return sum(
            math.prod(reader.shape(name)) * (dtype or reader.dtype(name)).itemsize
            for name in reader.names()
        )


def _check_own(checkpoint: Checkpoint) -> None:
    """Refuse what transformers does not build by itself."""
    is_own = checkpoint.template is None and checkpoint.derived is None
    is_here = checkpoint.is_downloaded and checkpoint.path is not None
    if not is_own or (is_here and read_configuration(checkpoint.path) is None):
        raise ArgumentError(
            f"{checkpoint.label} does not fit on one device, and only models of a config.json, "
            "without an adapter and without code of yours, are placed by themselves: let a "
            "function of yours place it (docs/guides/gpu.md)."
        )


def is_placed_run(run: Trajectory) -> bool:
    """Return whether `placed` places the models of a run."""
    return any(isinstance(c.template, Placed) for c in run.checkpoints)
