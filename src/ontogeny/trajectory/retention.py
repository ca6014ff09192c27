"""Chosen tensors of a checkpoint, kept in a small file when its revision is deleted after use."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from safetensors.torch import save_file

from ..errors import ArgumentError, CheckpointError
from ..whole_files import writing_whole
from .checkpoint import Checkpoint
from .trajectory import Trajectory
from .weights.files import WeightFiles, safe_metadata


def retained_path(checkpoint: Checkpoint, folder: str | Path) -> Path:
    """Return where the tensors of `checkpoint` are kept in `folder`."""
    derived = (
        ""
        if checkpoint.derived is None
        else f"-{checkpoint.derived.name.replace(' ', '-')}"
    )
    return Path(folder) / f"step-{checkpoint.step}{derived}.safetensors"


def retain(
    checkpoint: Checkpoint, names: Iterable[str], folder: str | Path
) -> Checkpoint:
    """Copy chosen tensors of a checkpoint into `folder`; return the checkpoint that reads them.

    What is there from the same weights is not written again, and its tensors are kept. A file is
    whole or not there.

    Parameters
    ----------
    checkpoint
        Its weights must be on this machine, unless all tensors are kept already.
    names
        Tensor names in the checkpoint's files (see `Skeleton.file_names`).
    folder
        Made if it is not there.

    Returns
    -------
    Checkpoint
        It reads these tensors only and makes no model. That of a Hub revision keeps its
        fingerprint, which is of the whole files.

    Raises
    ------
    ArgumentError
        If a name is not in the checkpoint.
    CheckpointError
        If the checkpoint cannot be read.

    Examples
    --------
    >>> import tempfile, torch
    >>> checkpoint = Trajectory.from_models({3: torch.nn.Linear(3, 2)})[3]
    >>> local = retain(checkpoint, ["weight"], tempfile.mkdtemp())
    >>> with local.open() as tensors:
    ...     tensors.names()
    ['weight']
    """
    requested = sorted(set(names))
    path = retained_path(checkpoint, folder)
    fingerprint = checkpoint.fingerprint
    present = _names_in(path, fingerprint)
    if not set(requested) <= present:
        with checkpoint.open() as reader:
            unknown = sorted(set(requested) - set(reader.names()))
            if unknown:
                raise ArgumentError(f"{checkpoint.label} has no tensors {unknown[:3]}.")
            both = sorted({*requested, *present})
            tensors = {
                name: reader.get(name).cpu().contiguous().clone() for name in both
            }
        with writing_whole(path) as half:
            save_file(tensors, half, metadata={"fingerprint": fingerprint})
    return _reading(checkpoint, path)


def retained(trajectory: Trajectory, folder: str | Path) -> Trajectory:
    """Return the trajectory with checkpoints that read from `folder` what was retained there.

    Checkpoints of which nothing was retained, or that have changed since, stay as they are.

    Raises
    ------
    CheckpointError
        If a checkpoint's fingerprint cannot be determined.
    """
    checkpoints = []
    for checkpoint in trajectory:
        path = retained_path(checkpoint, folder)
        there = path.is_file() and bool(_names_in(path, checkpoint.fingerprint))
        checkpoints.append(_reading(checkpoint, path) if there else checkpoint)
    return dataclasses.replace(trajectory, checkpoints=tuple(checkpoints))


def _reading(checkpoint: Checkpoint, path: Path) -> Checkpoint:
    return dataclasses.replace(checkpoint, weights=WeightFiles((path,)))


def _names_in(path: Path, fingerprint: str) -> set[str]:
    """Return the names kept in `path` from the same weights."""
    try:
        if safe_metadata(path).get("fingerprint") != fingerprint:
            return set()
        with WeightFiles((path,)).open() as reader:
            return set(reader.names())
    except CheckpointError:
        return set()
