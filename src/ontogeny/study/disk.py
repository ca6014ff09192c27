"""Hub revisions on disk while tasks use them; what weight blocks need is retained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..trajectory import Checkpoint, Prefetch, Trajectory, retain, retained
from .run import Task

__all__ = ["Revisions"]


class Revisions:
    """Bounds how many Hub revisions lie on disk during a run; without a bound it does nothing.

    Parameters
    ----------
    trajectory
        The checkpoints.
    max_revisions
        Revisions of ours on disk at any time; None keeps all of them.
    blocks
        Tensor names that are still to be read over all steps: they are copied to `folder` while a
        revision is there.
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
        self._blocks = list(dict.fromkeys(blocks))
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
        steps = [int(s) for s in self._trajectory.steps] if self._blocks else []
        order = list(dict.fromkeys([*order, *steps]))
        with Prefetch(self._trajectory, order, max_revisions=self._max) as prefetch:
            self._prefetch = prefetch
            try:
                yield self
            finally:
                self._prefetch = None

    @contextmanager
    def held(self, task: Task) -> Iterator[None]:
        """Hold the revision of a task on disk, and retain its blocks."""
        if self._prefetch is None or task.step is None:
            yield
            return
        with self._prefetch.use(task.step) as checkpoint:
            if self._blocks:
                retain(checkpoint, self._blocks, self._folder)
            yield

    def trajectory_of_blocks(self) -> Trajectory:
        """Return the checkpoints that weight blocks are read from, all retained where bounded."""
        if self._prefetch is None:
            return self._trajectory
        kept = retained(self._trajectory, self._folder)
        for checkpoint, there in zip(self._trajectory, kept, strict=True):
            if there is checkpoint or not self._all_in(there):
                with self._prefetch.use(checkpoint.step) as present:
                    retain(present, self._blocks, self._folder)
        return retained(self._trajectory, self._folder)

    def _all_in(self, kept: Checkpoint) -> bool:
        """Return whether all blocks were retained: a process with less to do may have done it."""
        with kept.open() as reader:
            return set(self._blocks) <= set(reader.names())
