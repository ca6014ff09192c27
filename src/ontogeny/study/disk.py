"""The bound on Hub revisions on disk during a run; what weight blocks need is retained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ..trajectory import Checkpoint, Prefetch, Trajectory, retain, retained
from .run import Task


class Revisions:
    """Bounds how many Hub revisions lie on disk during a run; without a bound it does nothing.

    While it is open, tasks read their checkpoints through it (`held`), however many each needs.

    Parameters
    ----------
    trajectory
        The checkpoints.
    max_revisions
        Downloaded revisions on disk at any time; None keeps all of them in the Hub cache.
    blocks
        Names of weight blocks that are still to be read over all steps: their tensors are copied
        to `folder` while a revision is there.
    folder
        Where retained tensors go.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        max_revisions: int | None,
        blocks: Sequence[str],
        folder: Path,
    ) -> None:
        self._trajectory, self._max, self._folder = trajectory, max_revisions, folder
        self._tensors = list(dict.fromkeys(block.partition("#")[0] for block in blocks))
        self._prefetch: Prefetch | None = None

    @property
    def at_once(self) -> int | None:
        """How many tasks may hold a revision at once, or None for any number."""
        return None if self._max is None else max(1, self._max - 1)

    @contextmanager
    def open(self, order: Sequence[int]) -> Iterator[Revisions]:
        """Download in this order of steps while open."""
        if self._max is None:
            yield self
            return
        steps = self._trajectory.steps.tolist() if self._tensors else []
        order = list(dict.fromkeys([*order, *steps]))
        with Prefetch(self._trajectory, order, max_revisions=self._max) as prefetch:
            self._prefetch = prefetch
            try:
                yield self
            finally:
                self._prefetch = None

    @contextmanager
    def held(self, task: Task) -> Iterator[Task]:
        """Give the task with checkpoints that it can read within the bound.

        That of a step is on disk meanwhile, wherever the task runs, and its blocks are retained.
        A task that may read any checkpoints fetches each when it reads it.
        """
        if self._prefetch is None or task.step is None:
            yield task
        elif task.any_step:
            yield replace(task, trajectory=self._prefetch.trajectory)
        else:
            with self._prefetch.use(task.step) as checkpoint:
                if self._tensors:
                    retain(checkpoint, self._tensors, self._folder)
                yield replace(task, trajectory=replace(task.trajectory, checkpoints=(checkpoint,)))

    def trajectory_of_blocks(self) -> Trajectory:
        """Return the checkpoints that weight blocks are read from, all retained where bounded."""
        if self._prefetch is None:
            return self._trajectory
        for checkpoint in retained(self._trajectory, self._folder):
            if not self._all_in(checkpoint):
                with self._prefetch.use(checkpoint.step) as present:
                    retain(present, self._tensors, self._folder)
        return retained(self._trajectory, self._folder)

    def _all_in(self, checkpoint: Checkpoint) -> bool:
        """Return whether all blocks were retained: a process with less to do may have done it."""
        if checkpoint is self._trajectory[checkpoint.step]:
            return False
        with checkpoint.open() as reader:
            return set(self._tensors) <= set(reader.names())
