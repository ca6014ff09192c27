"""Tasks through an executor, as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from ..errors import StoreError
from .disk import Revisions
from .tasks import Done, Job, Task
from .work import run_task

__all__ = ["map_tasks"]


def map_tasks(
    job: Job, tasks: Sequence[Task], executor: Executor | None, revisions: Revisions
) -> Iterator[Done]:
    """Run tasks here, or in the executor as they come; stopping cancels what has not begun.

    Where revisions are bounded, a task is handed over when its revision is on disk, and its
    revision is held until it is finished.
    """
    if executor is None:
        for task in tasks:
            with revisions.held(task):
                yield run_task(job, task)
        return
    if revisions.at_once is None:
        yield from _collect([(executor.submit, (_WORK, job, task)) for task in tasks])
        return

    def hold_and_run(task: Task) -> Done:
        with revisions.held(task):
            return executor.submit(_WORK, job, task).result()

    with ThreadPoolExecutor(revisions.at_once) as holders:
        yield from _collect([(holders.submit, (hold_and_run, task)) for task in tasks])


_WORK: Callable[..., Done] = run_task


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
