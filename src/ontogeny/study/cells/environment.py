"""Where a cell was computed: what changes the last digits of numbers, and of fits sometimes more.

It is kept with each cell and is no part of its fingerprint, which has the first two numbers of
versions alone: another processor or a patch does not throw away what a week has computed. But a
study whose cells come from several environments says so.

Threads are pinned while tasks run: their number changes the last bits. That a fit did not converge
is kept in the result and counted on the page, so it is not warned about as well; Python's warning
filters belong to the process, and a thread that set its own would take those of the others away.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import torch
from threadpoolctl import ThreadpoolController, threadpool_info

from ..._version import __version__
from ...store import difference

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
    libraries = _libraries(len(sys.modules))
    with _lock:
        if _holders == 0:
            _before = torch.get_num_threads()
            _limits = _limited_blas(libraries, threads)
            _filters = warnings.catch_warnings()
            _filters.__enter__()
            warnings.filterwarnings("ignore", message=".*converge")
        _holders += 1
        torch.set_num_threads(threads)
    try:
        with libraries.limit(limits=threads, user_api="openmp"):
            yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _filters is not None:
                _filters.__exit__(None, None, None)
                if _limits is not None:
                    _briefly(_limits.restore_original_limits)
                torch.set_num_threads(_before)


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> Any:
    """Look libraries with threads up once until more is imported; a look takes 2 ms, a task."""
    return ThreadpoolController()


def _limited_blas(libraries: Any, threads: int) -> Any:
    """Give BLAS its number of threads; return what restores it, None where it has that number.

    A thread for nothing took longer than a small task.
    """
    blas = libraries.select(user_api="blas").lib_controllers
    if all(library.num_threads == threads for library in blas):
        return None
    limit = libraries.limit
    return _briefly(lambda: limit(limits=threads, user_api="blas"))


def _briefly(function: Callable[[], Any]) -> Any:
    """Call a function in a thread that ends with it.

    threadpoolctl lets one thread alone change OpenBLAS, the first that does so while it lives; the
    holder that comes first may not be the one that leaves last.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function).result()


Environment: TypeAlias = Mapping[str, str]

# The packages that compute numbers.
PACKAGES = ("torch", "transformers", "scikit-learn", "numpy", "scipy")

# What chooses the order in which a sum is added up.
KERNELS = ("instructions", "BLAS", "MKL_CBWR", "GPU")

RECOMPUTE = (
    "To compute all in one environment, run the study into a new folder, or delete these cells "
    "and run again."
)


def environment(device: str = "cpu") -> dict[str, str]:
    """Return what computes numbers here: versions, instruction sets, and the GPU with its modes.

    Examples
    --------
    >>> sorted(environment())[:3]
    ['BLAS', 'instructions', 'numpy']
    """
    result = dict(_of_this_process())
    if device.startswith("cuda"):
        result["GPU"] = torch.cuda.get_device_name(device)
        result["CUDA"] = str(torch.version.cuda)
        result["matrix products"] = _precision(torch.backends.cuda.matmul)
    return result


def _precision(products: Any) -> str:
    """Return how float32 is multiplied: ``"tf32"`` is faster and has ten bits."""
    # PyTorch before 2.9 has a switch alone.
    mode = getattr(products, "fp32_precision", None)
    return (
        "tf32"
        if mode == "tf32" or (mode is None and products.allow_tf32)
        else "float32"
    )


@cache
def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of this package and of those of `packages` that are installed."""
    result = {"ontogeny": __version__}
    for package in packages:
        with suppress(PackageNotFoundError):
            result[package] = version(package)
    return result


@cache
def _of_this_process() -> dict[str, str]:
    # The same BLAS has other kernels for AVX2 and AVX-512, whose sums differ in the last bits.
    libraries = {
        str(library.get("architecture") or library["internal_api"])
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    instructions = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    hardware = {"instructions": instructions, "BLAS": ", ".join(sorted(libraries))}
    # MKL says of itself neither its kernels nor this.
    if mode := os.environ.get("MKL_CBWR"):
        hardware["MKL_CBWR"] = mode
    return versions(PACKAGES) | hardware


def counted(environments: Iterable[Environment]) -> list[tuple[dict[str, str], int]]:
    """Return each environment once, with how often it comes; the most frequent one first.

    Examples
    --------
    >>> counted([{"torch": "2.7"}, {"torch": "2.6"}, {"torch": "2.7"}])
    [({'torch': '2.7'}, 2), ({'torch': '2.6'}, 1)]
    """
    counts = Counter(json.dumps(dict(item), sort_keys=True) for item in environments)
    return [(json.loads(text), count) for text, count in counts.most_common()]


def differences(
    cells: Iterable[tuple[str, Environment]], here: Environment | None = None
) -> list[str]:
    """Return one line for each way in which cells were computed elsewhere than most of them.

    Parameters
    ----------
    cells
        Name of the node and environment of each cell.
    here
        The environment that all are compared with; by default that of most cells.

    Examples
    --------
    >>> old, new = {"torch": "2.6"}, {"torch": "2.7"}
    >>> differences([("loss", new), ("loss", new), ("norm", old)])
    ['1 of 3 cells (norm) was computed in another environment: torch: 2.7 -> 2.6']
    """
    cells = list(cells)
    groups = counted(item for _, item in cells)
    if not groups:
        return []
    usual = groups[0][0] if here is None else here
    lines = []
    for there, count in groups:
        if changed := difference(usual, there) if there else ["it was not recorded"]:
            where = _nodes(node for node, item in cells if item == there)
            verb = "was" if count == 1 else "were"
            lines.append(
                f"{count:,} of {len(cells):,} cells ({where}) {verb} computed in another "
                f"environment: {'; '.join(changed)}"
            )
    return lines


def usual(
    cells: Iterable[tuple[str, Environment]], entries: Iterable[str] = KERNELS
) -> dict[str, str]:
    """Return what most cells were computed with, as far as it changes the last digits of sums.

    Examples
    --------
    >>> usual([("loss", {"torch": "2.7", "instructions": "x86_64 AVX2"})])
    {'instructions': 'x86_64 AVX2'}
    """
    groups = counted(item for _, item in cells)
    return {
        name: groups[0][0][name] for name in entries if groups and name in groups[0][0]
    }


def _nodes(nodes: Iterable[str]) -> str:
    names = list(dict.fromkeys(nodes))
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and others"


def environment_of(provenance: Mapping[str, Any]) -> Environment:
    """Return where a cell was computed, by what is kept with it; empty for earlier versions."""
    recorded = provenance.get("environment")
    return recorded if isinstance(recorded, Mapping) else {}
