"""Executors of other kinds as those of the standard library: submitit's jobs are no futures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, Protocol


class Submitting(Protocol):
    """What takes tasks: a ``concurrent.futures.Executor``, or submitit's."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Return a future, or a job whose ``result()`` waits for the result or raises."""


class _JobFuture(Future[Any]):
    """The future of a job that is none: a thread waits for its result."""

    def __init__(self, job: Any) -> None:
        super().__init__()
        self._job = job
        threading.Thread(target=self._wait, name="job", daemon=True).start()

    def cancel(self) -> bool:
        """Cancel the job where it can be; nobody receives its result any more."""
        cancelled = super().cancel()
        if cancelled and hasattr(self._job, "cancel"):
            self._job.cancel()
        return cancelled

    def _wait(self) -> None:
        try:
            result = self._job.result()
        except BaseException as error:  # belongs to whoever asks for the result
            if self.set_running_or_notify_cancel():
                self.set_exception(error)
        else:
            if self.set_running_or_notify_cancel():
                self.set_result(result)


def submitted(
    executor: Submitting, function: Callable[..., Any], *arguments: Any
) -> Future[Any]:
    """Submit a call and return its future, whatever the executor gives.

    Examples
    --------
    >>> class Job:
    ...     def result(self):
    ...         return 4
    >>> class Cluster:
    ...     def submit(self, function, *arguments):
    ...         return Job()
    >>> submitted(Cluster(), abs, -4).result()
    4
    """
    job = executor.submit(function, *arguments)
    return job if isinstance(job, Future) else _JobFuture(job)


def workers_here(executor: Submitting | None) -> int:
    """Return how many tasks run on this machine at once; 0 for an executor that may be elsewhere.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> workers_here(None), workers_here(ThreadPoolExecutor(4))
    (1, 4)
    """
    if executor is None:
        return 1
    if isinstance(executor, ProcessPoolExecutor | ThreadPoolExecutor):
        return int(getattr(executor, "_max_workers", 1))
    return 0
