"""The bound on Hub revisions on disk during a run; what weight blocks need is retained."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ...trajectory import Checkpoint, Prefetch, Trajectory, retain, retained
from ..cells.models import Job
from ..folder.claims import claimed, holder
from .run import Task, left_of

_POLL = 0.2  # seconds until it is looked again whether another process has retained its steps


class Revisions:
    """The Hub revisions of a run, of which a bounded number lies on disk.

    Tasks read their checkpoints through it (`held`), however many each needs. What is downloaded
    ahead is claimed first, so that of several processes one downloads it.

    Parameters
    ----------
    job, trajectory, tasks
        What is run: revisions are downloaded in the order of the tasks.
    max_revisions
        Downloaded revisions on disk at any time.
    blocks, of_blocks
        Names of tensors that weight blocks are still to be read from, and at which steps: they are
        copied to the study's folder while a revision is there.
    """

    def __init__(
        self,
        job: Job,
        trajectory: Trajectory,
        tasks: Sequence[Task],
        max_revisions: int,
        blocks: Sequence[str],
        of_blocks: Sequence[int],
    ) -> None:
        self._job = job
        self._trajectory = trajectory
        self._folder = job.folder / "retained"
        self._tensors = list(dict.fromkeys(blocks))
        self._tasks = {
            t.step: t for t in tasks if t.step is not None and not t.any_step
        }
        self._claims: dict[int, ExitStack] = {}  # of steps that are downloaded ahead
        self._guard = threading.Lock()
        self.at_once = max(1, max_revisions - 1)
        """How many tasks may hold a revision at once."""
        self._block_steps = of_blocks
        firsts = [t.step for t in tasks if t.any_step and t.step in self._tasks]
        self.prefetch = Prefetch(
            trajectory,
            dict.fromkeys([*firsts, *self._tasks, *of_blocks]),
            max_revisions=max_revisions,
            # What no model is made of is not fetched whole.
            tensors=None if tasks else self._tensors,
            may_fetch=self._claim_ahead,
        )

    @contextmanager
    def at_work(self) -> Iterator[Revisions]:
        """Download ahead; afterwards give up the claims on what was downloaded so."""
        try:
            with self.prefetch:
                yield self
        finally:
            for claim in self._claims.values():
                claim.close()
            self._claims.clear()

    def has(self, task: Task) -> bool:
        """Return whether this process has the revision of a task."""
        return task.step in self._claims

    @contextmanager
    def claimed(self, task: Task) -> Iterator[bool]:
        """Hold the claim on a task, which may be held already to download for it.

        References and the step that they are read at go to one process, which downloads it once.
        """
        if task.any_step and self._is_elsewhere(task.step):
            yield False
            return
        with ExitStack() as stack:
            with self._guard:
                of_step = None if task.any_step else task.step
                ahead = None if of_step is None else self._claims.pop(of_step, None)
                if ahead is not None:
                    stack.enter_context(ahead)
                ours = ahead is not None or stack.enter_context(
                    claimed(self._job.folder, task.label)
                )
            yield ours

    @contextmanager
    def held(self, task: Task) -> Iterator[Task]:
        """Give the task with checkpoints that it can read within the bound.

        That of a step is on disk meanwhile, wherever the task runs, and its blocks are retained.
        A task that may read any checkpoints fetches each when it reads it.
        """
        if task.step is None:
            yield task
        elif task.any_step:
            if task.step in self._claims:
                self.prefetch.keep(task.step)
            yield replace(task, trajectory=self.prefetch.trajectory)
        else:
            with self.prefetch.use(task.step) as checkpoint:
                if self._tensors:
                    retain(checkpoint, self._tensors, self._folder)
                yield replace(
                    task, trajectory=replace(task.trajectory, checkpoints=(checkpoint,))
                )

    def trajectory_of_blocks(self) -> Trajectory:
        """Return the run; of the checkpoints that weight blocks are read from all is retained."""
        while steps := self._not_retained():
            ours = [step for step in steps if self._retain(step)]
            if not ours:
                time.sleep(_POLL)  # other processes are at them
        return self._of_blocks()

    def _not_retained(self) -> list[int]:
        """Return the steps whose blocks are still to be copied."""
        there = self._of_blocks()
        return [step for step in self._block_steps if not self._all_in(there[step])]

    def _of_blocks(self) -> Trajectory:
        return retained(self._trajectory, self._folder)

    def _retain(self, step: int) -> bool:
        """Retain the blocks of a step, unless another process does so."""
        bare = Task(_tensors_of(step), self._trajectory, (), step)
        with self.claimed(bare) as ours:
            if ours and not self._all_in(self._of_blocks()[step]):
                with self.prefetch.use(step) as present:
                    retain(present, self._tensors, self._folder)
        return ours

    def _is_elsewhere(self, step: int | None) -> bool:
        """Return whether another process has the task of a step, which is claimed otherwise."""
        task = None if step is None else self._tasks.get(step)
        if task is None or step is None or self._claim_ahead(step):
            return False
        return bool(holder(self._job.folder, task.label))

    def _claim_ahead(self, step: int) -> bool:
        """Claim what a step is downloaded for; return False where that is not for us to do."""
        task = self._tasks.get(step)
        with self._guard, ExitStack() as stack:
            if step in self._claims:
                return True
            label = _tensors_of(step) if task is None else task.label
            if not stack.enter_context(claimed(self._job.folder, label)):
                return False
            if task is None and self._all_in(self._of_blocks()[step]):
                return False
            if task is not None and not left_of(self._job, task):
                return False
            self._claims[step] = stack.pop_all()
            return True

    def _all_in(self, checkpoint: Checkpoint) -> bool:
        """Return whether all blocks were retained: a process with less to do may have done it."""
        # `retained` gives back the checkpoint itself where nothing of it is kept in the folder.
        if checkpoint is self._trajectory[checkpoint.step]:
            return False
        with checkpoint.open() as reader:
            return set(self._tensors) <= set(reader.names())


def _tensors_of(step: int) -> str:
    return f"the tensors of step {step}"
