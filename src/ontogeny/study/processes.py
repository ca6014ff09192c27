"""Tasks in worker processes, of which one may kill its worker: it fails alone, the rest goes on.

A process that dies takes its whole pool with it. Which tasks were being worked on is known by their
claims. These are tried once more, each alone in a new pool: one that kills that as well has failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from ..errors import StoreError
from .claims import is_abandoned, sweep_claims
from .memory import workers_here
from .readings import Job
from .run import Done, Task, give_up, run_task

_TRIES = 2
KILLED = "the worker process that computed it was killed twice; it may need more memory"


def run_in_processes(
    job: Job, tasks: Sequence[Task], executor: ProcessPoolExecutor
) -> Iterator[Done]:
    """Run tasks in a pool, and in new ones like it where a worker died.

    Raises
    ------
    StoreError
        If workers died that were at no task.
    """
    left, deaths, pool = list(tasks), Counter[str](), executor
    try:
        while left:
            alone = [task for task in left if deaths[task.label]][:1]
            begun = alone or list(left)
            for task, done in _finished(job, begun, pool):
                left.remove(task)
                yield done
            if not (unfinished := [task for task in begun if task in left]):
                continue
            pool.shutdown()  # its other processes have ended after that
            killers = [task for task in unfinished if is_abandoned(job.folder, task.label)]
            if not killers:
                raise StoreError(
                    "a worker process died (out of memory, or killed) before it began with a task; "
                    "finished cells are kept, and the same command goes on from there."
                )
            for task in killers:
                deaths[task.label] += 1
                if deaths[task.label] == _TRIES:
                    left.remove(task)
                    yield give_up(job, task, KILLED)
            sweep_claims(job.folder)
            pool = _like(executor)
    finally:
        if pool is not executor:
            pool.shutdown(cancel_futures=True)


def _finished(
    job: Job, tasks: Sequence[Task], pool: ProcessPoolExecutor
) -> Iterator[tuple[Task, Done]]:
    """Run tasks and give what finishes; where the pool breaks, the rest is not given."""
    futures = {}
    try:
        for task in tasks:
            futures[pool.submit(run_task, job, task)] = task
    except BrokenProcessPool:  # some have been submitted before
        pass
    try:
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except BrokenProcessPool:
                continue
    finally:
        for future in futures:
            future.cancel()


def _like(pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """Return a new pool with the same number of processes, started in the same way."""
    return ProcessPoolExecutor(
        workers_here(pool),
        pool._mp_context,
        initializer=pool._initializer,
        initargs=pool._initargs,
    )
