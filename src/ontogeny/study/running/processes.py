"""Tasks in worker processes, of which one may kill its worker: it fails alone, the rest goes on.

A process that dies takes its whole pool with it. Which tasks were being worked on is known by their
claims. These are tried once more, each alone in a new pool: one that kills that as well has failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeAlias

from ...errors import StoreError
from ..cells.readings import Job
from ..folder.claims import claimed, is_abandoned, sweep_claims
from .executors import workers_here
from .run import Done, Task, compute_task, give_up

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
