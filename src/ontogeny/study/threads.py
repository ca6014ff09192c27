"""What holds for a whole process while tasks run in it, whichever thread they are in.

Threads are pinned: their number changes the last bits. That a fit did not converge is kept in the
result and counted on the page, so it is not warned about as well; Python's warning filters belong
to the process, and a thread that set its own would take those of the others away.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_limits = None
_filters: warnings.catch_warnings | None = None
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
    global _holders, _limits, _filters, _before
    import torch
    from threadpoolctl import threadpool_limits

    with _lock:
        if _holders == 0:
            _before = torch.get_num_threads()
            _limits = threadpool_limits(limits=threads)
            _filters = warnings.catch_warnings()
            _filters.__enter__()
            warnings.filterwarnings("ignore", message=".*converge")
        _holders += 1
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _limits is not None and _filters is not None:
                _filters.__exit__(None, None, None)
                _limits.restore_original_limits()
                torch.set_num_threads(_before)
