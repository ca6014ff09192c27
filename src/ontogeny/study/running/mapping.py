"""Tasks one after another or through an executor, shared with other processes in the folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ... import activity
from ...errors import StoreError
from ..cells.readings import Job
from ..folder.claims import holder
from .disk import Revisions
from .executors import Submitting, submitted
from .processes import KILLED, compute_in_worker, run_in_processes
from .run import Done, Task, compute_task, give_up, left_of, run_task, taken

_PATIENCE = 60.0  # seconds until it is said that no task has begun
_POLL = 0.5  # seconds until the claims of other processes are read again

Run: TypeAlias = Callable[[Job, Task], Done]


@dataclass(frozen=True)
class TaskRunner:
    """How tasks are run: here, or in the executor as they come; stopping cancels what waits.

    Where revisions are bounded, a task is submitted when its revision is on disk, and its revision
    is held until it is finished. `waiting` receives a line about what other processes work on.
    """

    job: Job
    executor: Submitting | None
    revisions: Revisions | None
    waiting: Callable[[str], None]

    def run(self, tasks: Sequence[Task]) -> Iterator[Done]:
        """Run tasks; what other processes work on is waited for, and done here if they die."""
        remaining, noted = list(tasks), False
        while remaining:
            elsewhere: dict[str, str] = {}
            for done in self._once(remaining):
                if done.taken_by:
                    elsewhere[done.label] = done.taken_by
                else:
                    yield done
            if elsewhere and not noted:
                label, who = next(iter(elsewhere.items()))
                others = f" and {len(elsewhere) - 1} more tasks" if len(elsewhere) > 1 else ""
                self.waiting(f"waiting for {label}{others}, which {who} computes in this folder")
                noted = True
            remaining = [task for task in remaining if task.label in elsewhere]
            # Until one claim is gone: its task is finished, or its holder died and it is done here.
            while remaining:
                time.sleep(_POLL)
                if not all(holder(self.job.folder, task.label) for task in remaining):
                    break

    def _once(self, tasks: Sequence[Task]) -> Iterator[Done]:
        """Run all tasks that no other process works on."""
        job, executor, revisions = self.job, self.executor, self.revisions
        if executor is not None:
            activity.now(partial(_under_way, job, [task.label for task in tasks]))
        if revisions is not None and executor is not None:
            yield from self._held_here(tasks, executor, revisions)
        elif revisions is not None:
            for task in revisions.in_order(tasks):
                yield _bounded(job, task, revisions, compute_task)
        elif executor is None:
            for task in tasks:
                yield run_task(job, task)
        elif isinstance(executor, ProcessPoolExecutor):
            yield from run_in_processes(
                job, tasks, executor, lambda pool, task: pool.submit(run_task, job, task)
            )
        else:
            submit = partial(submitted, executor, run_task, job)
            yield from self._collect([(task, partial(submit, task)) for task in tasks])

    def _held_here(
        self, tasks: Sequence[Task], executor: Submitting, revisions: Revisions
    ) -> Iterator[Done]:
        """Run tasks in the executor, each while a thread of this process holds its revision."""

        def submit(pool: Submitting, task: Task) -> Future[Done]:
            run = compute_in_worker if isinstance(pool, ProcessPoolExecutor) else compute_task

            def there(job: Job, task: Task) -> Done:
                return submitted(pool, run, job, task).result()

            return holders.submit(_bounded, self.job, task, revisions, there)

        ordered = revisions.in_order(tasks)
        with ThreadPoolExecutor(revisions.at_once) as holders:
            if isinstance(executor, ProcessPoolExecutor):
                yield from run_in_processes(self.job, ordered, executor, submit)
            else:
                yield from self._collect(
                    [(task, partial(submit, executor, task)) for task in ordered]
                )

    def _collect(self, calls: Sequence[tuple[Task, Callable[[], Future[Done]]]]) -> Iterator[Done]:
        """Give what the call of each task returns as it comes."""
        folder = self.job.folder
        futures: dict[Future[Done], Task] = {}
        try:
            for task, call in calls:
                futures[call()] = task
            done, _ = wait(futures, _PATIENCE, FIRST_COMPLETED)
            if not done and not any(holder(folder, task.label) for task in futures.values()):
                self.waiting(
                    f"no task has begun for {_PATIENCE:.0f} s: do the executor's workers start? A "
                    "batch system lets jobs wait, without an error, that ask for what it has not."
                )
            for future in as_completed(futures):
                try:
                    yield future.result()
                except Exception as error:
                    # As Dask calls it, which has tried some times; it need not be installed here.
                    if type(error).__name__ != "KilledWorker":
                        raise
                    yield give_up(self.job, futures[future], KILLED)
        except BrokenProcessPool as error:  # of a pool that is not the standard library's
            raise StoreError(
                "a worker process died (out of memory, or killed); finished cells are kept, "
                "and the same command goes on from there."
            ) from error
        finally:
            for future in futures:
                future.cancel()


def _under_way(job: Job, labels: Sequence[str]) -> str:
    """Return which tasks processes work on, in words."""
    claimed = [label for label in labels if holder(job.folder, label)][:5]
    return f"computing {', '.join(claimed)}" if claimed else "starting processes"


def _bounded(job: Job, task: Task, revisions: Revisions, compute: Run) -> Done:
    """Claim a task, and compute it while its revision is on disk.

    So nothing is fetched for what another process computes, or what needs no work.
    """
    with revisions.claimed(task) as ours:
        if not ours:
            return taken(job, task)
        if not left_of(job, task):
            return Done(task.label)
        with revisions.held(task) as trajectory:
            return compute(job, trajectory)
