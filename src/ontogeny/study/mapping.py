"""Tasks through an executor, as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from concurrent.futures.process import BrokenProcessPool

from ..errors import StoreError
from .work import Done, Job, Task, run_task

__all__ = ["map_tasks"]


def map_tasks(job: Job, tasks: Sequence[Task], executor: Executor | None) -> Iterator[Done]:
    """Run tasks here, or in the executor as they come; stopping cancels what has not begun."""
    if executor is None:
        yield from (run_task(job, task) for task in tasks)
        return
    work: Callable[..., Done] = run_task
    futures = [executor.submit(work, job, task) for task in tasks]
    try:
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
