"""Threads are pinned while numbers are computed: their count changes the last bits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["pinned"]

_lock = threading.Lock()
_holders = 0
_limits = None
_before = 1


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Use `threads` threads in BLAS, OpenMP and PyTorch; restore when the last holder leaves.

    Several threads of one process may hold it at once, as long as they ask for the same number.

    Examples
    --------
    >>> import torch
    >>> with pinned(1):
    ...     torch.get_num_threads()
    1
    """
    global _holders, _limits, _before
    import torch
    from threadpoolctl import threadpool_limits

    with _lock:
        if _holders == 0:
            _before = torch.get_num_threads()
            _limits = threadpool_limits(limits=threads)
        _holders += 1
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _limits is not None:
                _limits.restore_original_limits()
                torch.set_num_threads(_before)
