"""Whether what a study holds at once fits into this machine, checked before it computes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from ..machine import memory_of_this_machine
from .executors import Submitting

# All three by benchmarks/memory_model.py.
_BUFFERS = 100_000_000  # of the libraries, when they have computed something of any size
_COPIES = 8  # of one layer's sample in float64
_PRODUCTS = 3  # of features by features, in float64


def held_about(
    model_bytes: int,
    pass_bytes: int,
    activation_bytes: int,
    reference_bytes: int,
    largest: tuple[int, int],
) -> int:
    """Return about how many bytes one worker holds at most, beside the libraries.

    The weights; the larger of one forward pass and of float64 work on one layer; the samples of
    this step and of the reference step; and buffers. The guide on costs has what studies took.

    Parameters
    ----------
    model_bytes
        Of the weights.
    pass_bytes
        What one batch takes beside them.
    activation_bytes
        Of the sample of one checkpoint.
    reference_bytes
        Of what is read of the reference step beside it.
    largest
        Rows and features of the sample's largest layer.

    Examples
    --------
    >>> held_about(1000, 300, 50, 50, (10, 2)) - held_about(0, 0, 0, 0, (0, 0))
    2476
    """
    rows, features = largest
    work = 8 * (_COPIES * rows * features + _PRODUCTS * features**2)
    samples = activation_bytes + reference_bytes
    return _BUFFERS + model_bytes + max(pass_bytes, work) + samples


def too_large(needed_bytes: int, workers: int = 1, *, about: bool = False) -> str | None:
    """Return what is wrong with holding so many bytes in each worker, or None.

    Where they are `about` so many, it may yet go well, and the sentence says so.

    Examples
    --------
    >>> too_large(1000) is None
    True
    >>> too_large(10**18)
    'a study takes 1e+09 GB at once, this machine has ... GB; ...'
    """
    room = memory_of_this_machine()
    if room is None or needed_bytes * workers <= room:
        return None
    each, fewer = "", ""
    if workers > 1:
        each = f" in each of {workers} workers, {needed_bytes * workers / 1e9:.3g} GB together"
        fewer = "take fewer workers, or "
    takes = "may take about" if about else "takes"
    return (
        f"a study {takes} {needed_bytes / 1e9:.3g} GB at once{each}, "
        f"this machine has {room / 1e9:.3g} GB; {fewer}give the observables max_tokens, fewer "
        'layers or fewer texts, or tokens="mean", or the study a smaller batch_size.'
    )


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
