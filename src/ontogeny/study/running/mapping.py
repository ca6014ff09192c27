"""Tasks one after another or through an executor, shared with other processes in the folder.

A process that dies takes its whole pool with it. Which tasks were being worked on is known by their
claims. These are tried once more, each alone in a new pool: one that kills that as well has failed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
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
from ..cells.models import Job
from ..folder.claims import claimed, holder, is_abandoned, sweep_claims
from .disk import Revisions
from .executors import Submitting, submitted, workers_here
from .run import Done, Task, compute_task, give_up, left_of, run_task, taken

_TRIES = 2
KILLED = "the worker process that computed it was killed twice; it may need more memory"

Submit: TypeAlias = Callable[[ProcessPoolExecutor, Task], Future[Done]]


def compute_in_worker(job: Job, task: Task) -> Done:
    """Compute a task that another process has claimed, with a note that this one is at it."""
    with claimed(job.folder, _at_work(task)):
        return compute_task(job, task)


def _at_work(task: Task) -> str:
    return f"{task.label} in a worker"


def run_in_processes(
    job: Job, tasks: Sequence[Task], executor: ProcessPoolExecutor, submit: Submit
) -> Iterator[Done]:
    """Run tasks in a pool, and in new ones like it where a worker died.

    Parameters
    ----------
    job, tasks
        What is run.
    executor
        The pool, which stays as it is if no worker dies.
    submit
        Submits a task to a pool: `run_task`, or `compute_in_worker` where it is claimed here.

    Raises
    ------
    StoreError
        If workers died that were at no task.
    """
    remaining, deaths, pool = list(tasks), Counter[str](), executor
    try:
        while remaining:
            # Several tasks are under way when a pool breaks, and any may have killed its worker:
            # suspects run alone, so that a second death is surely their own.
            alone = [task for task in remaining if deaths[task.label]][:1]
            begun = alone or list(remaining)
            for task, done in _finished(begun, pool, submit):
                remaining.remove(task)
                yield done
            if not (unfinished := [task for task in begun if task in remaining]):
                continue
            pool.shutdown()  # its other processes have ended after that
            killers = [task for task in unfinished if _was_left(job, task)]
            if not killers:
                raise StoreError(
                    "a worker process died (out of memory, or killed) before it began with a task; "
                    "finished cells are kept, and the same command goes on from there."
                )
            for task in killers:
                deaths[task.label] += 1
                if deaths[task.label] == _TRIES:
                    remaining.remove(task)
                    yield give_up(job, task, KILLED)
            sweep_claims(job.folder)
            pool = _like(executor)
    finally:
        if pool is not executor:
            pool.shutdown(cancel_futures=True)


def _was_left(job: Job, task: Task) -> bool:
    """Return whether a worker died while it was at a task."""
    return any(is_abandoned(job.folder, label) for label in (task.label, _at_work(task)))


def _finished(
    tasks: Sequence[Task], pool: ProcessPoolExecutor, submit: Submit
) -> Iterator[tuple[Task, Done]]:
    """Run tasks and give what finishes; where the pool breaks, the rest is not given."""
    futures: dict[Future[Done], Task] = {}
    try:
        for task in tasks:
            futures[submit(pool, task)] = task
    except BrokenProcessPool:  # some have been submitted before
        pass
    try:
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except BrokenProcessPool:
                for task_future in futures:  # nothing more is fetched for this pool
                    task_future.cancel()
            except CancelledError:
                continue
    finally:
        for future in futures:
            future.cancel()


def _like(pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """Return a new pool with the same number of processes, started in the same way."""
    return ProcessPoolExecutor(
        workers_here(pool), pool._mp_context, initializer=pool._initializer, initargs=pool._initargs
    )


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
