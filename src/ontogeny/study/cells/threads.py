"""What holds for a whole process while tasks run in it, whichever thread they are in.

Threads are pinned: their number changes the last bits. That a fit did not converge is kept in the
result and counted on the page, so it is not warned about as well; Python's warning filters belong
to the process, and a thread that set its own would take those of the others away.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_lock = threading.Lock()
_holders = 0
_limits: Any = None
_filters: warnings.catch_warnings | None = None
_before = 1


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Use `threads` threads in BLAS, OpenMP and PyTorch; restore when the last holder leaves.

    Several threads of one process may hold it at once, as long as they ask for the same number.
    BLAS has one number for the process, OpenMP one for each thread that calls it.

    Examples
    --------
    >>> import torch
    >>> with pinned(1):
    ...     torch.get_num_threads()
    1
    """
    global _holders, _limits, _filters, _before
    import torch

    with _lock:
        if _holders == 0:
            _before = torch.get_num_threads()
            _limits = _briefly(lambda: _libraries().limit(limits=threads, user_api="blas"))
            _filters = warnings.catch_warnings()
            _filters.__enter__()
            warnings.filterwarnings("ignore", message=".*converge")
        _holders += 1
        torch.set_num_threads(threads)
    try:
        with _libraries().limit(limits=threads, user_api="openmp"):
            yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _limits is not None and _filters is not None:
                _filters.__exit__(None, None, None)
                _briefly(_limits.restore_original_limits)
                torch.set_num_threads(_before)


def _libraries() -> Any:
    """Return the control of all libraries with threads that are loaded by now."""
    return _libraries_after(len(sys.modules))


@lru_cache(maxsize=1)
def _libraries_after(_modules: int) -> Any:
    """Look libraries up once until more is imported; a look takes 2 ms, for every task."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _briefly(function: Callable[[], Any]) -> Any:
    """Call a function in a thread that ends with it.

    threadpoolctl lets one thread alone change OpenBLAS, the first that does so while it lives; the
    holder that comes first may not be the one that leaves last.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function).result()
