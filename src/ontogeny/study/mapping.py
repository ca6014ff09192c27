"""Tasks through an executor, as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from ..errors import StoreError
from .claims import holder
from .disk import Revisions
from .remaining import remaining
from .tasks import Done, Job, Task
from .work import run_task

__all__ = ["map_tasks"]

_POLL = 0.5  # seconds until what other processes were at is looked at again


def map_tasks(
    job: Job,
    tasks: Sequence[Task],
    executor: Executor | None,
    revisions: Revisions,
    waiting: Callable[[str], None],
) -> Iterator[Done]:
    """Run tasks here, or in the executor as they come; stopping cancels what has not begun.

    What other processes are at is waited for, and done here if they die. `waiting` is told of it.
    Where revisions are bounded, a task is handed over when its revision is on disk, and its
    revision is held until it is finished.
    """
    left, said = list(tasks), False
    while left:
        taken: dict[str, str] = {}
        for done in _once(job, left, executor, revisions):
            if done.taken_by:
                taken[done.label] = done.taken_by
            else:
                yield done
        if taken and not said:
            label, who = next(iter(taken.items()))
            others = f" and {len(taken) - 1} more tasks" if len(taken) > 1 else ""
            waiting(f"waiting for {label}{others}, which {who} computes in this folder")
            said = True
        left = [task for task in left if task.label in taken]
        while left:
            time.sleep(_POLL)
            if not all(holder(job.folder, task.label) for task in left):
                break


def _once(
    job: Job, tasks: Sequence[Task], executor: Executor | None, revisions: Revisions
) -> Iterator[Done]:
    """Run all tasks that no other process is at."""
    if executor is None:
        for task in tasks:
            yield _held(job, task, revisions, run_task)
        return
    if revisions.at_once is None:
        yield from _collect([(executor.submit, (_WORK, job, task)) for task in tasks])
        return

    def there(job: Job, task: Task) -> Done:
        return executor.submit(_WORK, job, task).result()

    with ThreadPoolExecutor(revisions.at_once) as holders:
        yield from _collect([(holders.submit, (_held, job, t, revisions, there)) for t in tasks])


_WORK: Callable[..., Done] = run_task


def _held(job: Job, task: Task, revisions: Revisions, run: Callable[[Job, Task], Done]) -> Done:
    """Run a task while its revision is on disk; nothing is fetched for one that needs no work."""
    if revisions.at_once is not None:
        taken_by = holder(job.folder, task.label)
        rest, found = remaining(job, task)
        if taken_by or rest is None:
            return Done(task.label, found=found, taken_by=taken_by)
    with revisions.held(task) as held:
        return run(job, held)


def _collect(calls: Sequence[tuple[Callable[..., object], tuple[object, ...]]]) -> Iterator[Done]:
    futures: list = []
    try:
        futures += (submit(*arguments) for submit, arguments in calls)
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        raise StoreError(
            "a worker process died (out of memory, or killed); finished cells are kept, "
            "and the same command goes on from there."
        ) from error
    finally:
        for future in futures:
            future.cancel()
