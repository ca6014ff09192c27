"""Which executor a command computes with."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from ..errors import ArgumentError

__all__ = ["executor_for"]


@contextmanager
def executor_for(workers: int, scheduler: str | None) -> Iterator[Executor | None]:
    """Give processes on this machine, a Dask cluster, or None to compute here.

    Raises
    ------
    ArgumentError
        If both are asked for, Dask is not installed, or the scheduler does not answer.
    """
    if scheduler is not None:
        if workers > 1:
            raise ArgumentError("give either --workers or --scheduler, not both.")
        with _cluster(scheduler) as executor:
            yield executor
    elif workers > 1:
        with _processes(workers) as executor:
            yield executor
    else:
        yield None


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    import multiprocessing
    import signal
    from concurrent.futures import ProcessPoolExecutor

    # Forking a process that holds OpenMP threads can hang; a fresh one is safe everywhere.
    context = multiprocessing.get_context("spawn")
    # Ctrl-C reaches the workers as well; this process alone answers it.
    pool = ProcessPoolExecutor(
        workers, context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise ArgumentError(
            "--scheduler needs Dask: install it with pip install 'ontogeny[dask]'."
        ) from None
    try:
        client = Client(address, timeout="20s")
    except (OSError, ValueError) as error:
        raise ArgumentError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        yield client.get_executor()
