"""Whether the files of a run are read one checkpoint after the other, each by all that needs it.

The system keeps in memory what was read of files last. A run that fits there is read from the disk
once in whichever order. Of a larger one all that reads a checkpoint is done while it is there:
hashing, its own cells, and the controls that are made of it and of the first one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ...errors import CheckpointError
from ...machine import memory_for_files
from ...trajectory import Checkpoint


def file_bytes(checkpoints: Iterable[Checkpoint]) -> list[int]:
    """Return the sizes of the weights of those checkpoints that lie in files of this machine."""
    sizes = []
    for checkpoint in checkpoints:
        with suppress(CheckpointError):  # it is still to be fetched
            if (files := checkpoint.weights.on_disk()) is not None:
                sizes.append(sum(size for _, size, *_ in files.stamp()))
    return sizes


def is_read_by_step(checkpoints: Iterable[Checkpoint]) -> bool:
    """Return whether a run is too large for the memory, and two of its checkpoints are not."""
    sizes = file_bytes(checkpoints)
    return 2 * max(sizes, default=0) <= memory_for_files() < sum(sizes)
