"""Which executor a command computes with."""

from __future__ import annotations

import multiprocessing
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from .._exports import load_entry
from ..errors import ArgumentError
from .devices import VISIBLE, visible_gpus

if TYPE_CHECKING:
    from ..study.running.executors import Submitting

GROUP = "ontogeny.executors"


@contextmanager
def executor_for(
    workers: int,
    scheduler: str | None,
    device: str = "cpu",
    installed: str | None = None,
) -> Iterator[Submitting | None]:
    """Give processes on this machine, a Dask cluster, an installed executor, or None: here.

    Of several GPUs each process takes the next one, if `device` is ``"cuda"`` without a number.

    Raises
    ------
    ArgumentError
        If two are asked for, Dask is not installed, the scheduler does not answer, or no package
        declares an executor of this name.
    """
    if (workers > 1) + (scheduler is not None) + (installed is not None) > 1:
        raise ArgumentError("give one of --workers, --scheduler and --executor.")
    if installed is not None:
        with _installed(installed) as executor:
            yield executor
    elif scheduler is not None:
        with _cluster(scheduler) as executor:
            yield executor
    elif workers > 1:
        with _processes(
            workers, visible_gpus() if device == "cuda" else []
        ) as executor:
            yield executor
    else:
        yield None


@contextmanager
def _processes(workers: int, gpus: Sequence[str]) -> Iterator[Executor]:
    from concurrent.futures import ProcessPoolExecutor

    # The second Ctrl-C ends all without the order in which semaphores are given back: they are
    # cleaned up, and what cleans them up says so in Python's words.
    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")
    # Forking a process that holds OpenMP threads can hang; a fresh one is safe everywhere.
    context = multiprocessing.get_context("spawn")
    begun = context.Value("i", 0)
    pool = ProcessPoolExecutor(
        workers, context, initializer=_begin, initargs=(gpus, begun)
    )
    before = _answer_interrupts()
    try:
        yield pool
    except KeyboardInterrupt:
        pool.shutdown(cancel_futures=True)  # what is under way is finished, and kept
        raise
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    if before is not None:
        signal.signal(signal.SIGINT, before)


def stopped(arguments: Sequence[str]) -> str:
    """Return what is said of a command with these arguments that Ctrl-C has stopped.

    Examples
    --------
    >>> stopped(["run", "study.toml"]).strip()
    'ontogeny: stopped; what is finished is kept. To go on: ontogeny run study.toml'
    """
    again = shlex.join(["ontogeny", *arguments])
    return f"\nontogeny: stopped; what is finished is kept. To go on: {again}\n"


def _answer_interrupts() -> Any:
    """Let the first Ctrl-C finish what is under way and the second end all processes at once.

    Otherwise the second one leaves this process waiting for workers that wait for it. The answer
    stays until this process ends. Returns what answered before; None in a thread, which cannot.
    """
    asked = False

    def answer(*_: Any) -> None:
        nonlocal asked
        if asked:
            for worker in multiprocessing.active_children():
                worker.kill()
            os.write(2, stopped(sys.argv[1:]).encode(errors="backslashreplace"))
            os._exit(130)
        asked = True
        os.write(
            2, b"\nontogeny: finishing what is under way; Ctrl-C again to stop now.\n"
        )
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGINT, answer)


def _end_with_parent() -> None:
    """End this worker when its parent is gone, also one that was killed: it would idle for ever."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _begin(gpus: Sequence[str], begun: Any) -> None:
    """Set up a worker: Ctrl-C is answered by its parent alone, and it sees one GPU of several."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    if len(gpus) > 1:
        with begun.get_lock():
            number = begun.value
            begun.value += 1
        # Read when CUDA starts in this process.
        os.environ[VISIBLE] = gpus[number % len(gpus)]


@contextmanager
def _installed(name: str) -> Iterator[Submitting]:
    """Give the executor that an installed package declares; it may be a context of its own."""
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in entries:
        there = ", ".join(sorted(entries)) or "none is installed"
        raise ArgumentError(
            f"--executor must be one that a package declares as an entry point of {GROUP}; got "
            f"{name!r}, and {there}."
        )
    made = load_entry("executor", entries[name], ArgumentError)()
    with made if hasattr(made, "__enter__") else nullcontext(made) as executor:
        if not callable(getattr(executor, "submit", None)):
            raise ArgumentError(
                f"the executor {name} has no submit(function, *arguments); it is a "
                f"{type(executor).__name__}."
            )
        yield executor


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
        raise ArgumentError(
            f"no Dask scheduler answers at {address}: {error}"
        ) from None
    with client:
        yield client.get_executor()
