"""The machine: its memory, what is free of it, and which of its processes have ended."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
# The files of a limit at the root of cgroups version 2, and of version 1's for memory.
_LIMITS = {
    "": Path("/sys/fs/cgroup/memory.max"),
    "memory": Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
}
_MEMORY = Path("/proc/meminfo")
_SURELY_ENDED = 7 * 24 * 3600.0  # seconds; a job may be suspended for days


_lock = threading.Lock()
_thread = threading.local()
_holders = 0
_before = 1


@contextmanager
def one_thread(blas: bool = False) -> Iterator[None]:
    """Let PyTorch compute on one thread, and with `blas` NumPy too; also a decorator.

    On busy cores threads wait for one another at every operation: the finite check of six
    checkpoints of SmolLM2-135M took 14 to 18 s of processor time with two threads, 3 s with one,
    and NMF of 5,000 x 768 numbers 106 s with two, 10 with one.

    Examples
    --------
    >>> import torch
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    import torch
    from threadpoolctl import threadpool_info, threadpool_limits

    global _holders, _before
    # One of several threads that hold it at once would see the 1 of another.
    with _lock:
        _before = _before if _holders else torch.get_num_threads()
        _holders = _holders + 1
        inner = getattr(_thread, "holds", False)
        _thread.holds = True
    torch.set_num_threads(1)
    several = blas and any(pool["num_threads"] > 1 for pool in threadpool_info())
    try:
        with threadpool_limits(1) if several else nullcontext():
            yield
    finally:
        with _lock:
            _holders = _holders - 1
            _thread.holds = inner
            torch.set_num_threads(1 if inner else _before)


def size_text(count: float) -> str:
    """Return a number of bytes as people say it.

    Examples
    --------
    >>> size_text(999), size_text(2050), size_text(6e10)
    ('999 B', '2.05 kB', '60 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def memory_of_this_machine() -> int | None:
    """Return the bytes of memory that this process may use, None where it cannot be known.

    The least of what is built in and of what the container or the batch job allows.
    """
    limits = []
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in _limit_files():
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # no such limit, or the word "max"
            continue
    return min(limits, default=None)


def free_memory() -> int | None:
    """Return the bytes of memory that may still be taken, None where it cannot be known.

    What Linux can give without swapping, but no more than `memory_of_this_machine`, which is all
    that is known elsewhere.
    """
    allowed = memory_of_this_machine()
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:  # not Linux
        return allowed
    available = [
        1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")
    ]
    return min([*available, *([] if allowed is None else [allowed])], default=None)


def memory_for_files() -> int:
    """Return about how many bytes of files that were read the system keeps in memory.

    Half of what this process may use: the rest is for what is computed.
    """
    return (memory_of_this_machine() or 0) // 2


def free_disk(path: Path) -> int:
    """Return the bytes that are free where a path lies, or will lie."""
    return shutil.disk_usage(
        next(p for p in (path, *path.absolute().parents) if p.exists())
    ).free


def peak_memory() -> int:
    """Return the bytes of memory that this process has held at most, 0 where it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else 1024 * peak)


def writer() -> str:
    """Return a name for this process: that of its machine, and its number there."""
    return f"{_machine()}-{os.getpid()}"


def is_gone(writer: str) -> bool:
    """Return whether `writer` is a process of this machine that has ended.

    Examples
    --------
    >>> is_gone(writer()), is_gone("00000000-1")
    (False, False)
    """
    machine, _, process = writer.partition("-")
    # Elsewhere signal 0 ends a process.
    if machine == _machine() and os.name == "posix":
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except OSError:  # somebody else's process
            pass
    return False


def has_ended(path: Path, writer: str | None) -> bool:
    """Return whether the `writer` of a temporary file has surely ended.

    It is a process of this machine that is gone, or has not touched the file for a week.
    """
    if writer is not None and is_gone(writer):
        return True
    return time.time() - path.stat().st_mtime > _SURELY_ENDED


@cache
def _machine() -> str:
    """Return eight digits for the machine as processes number it: containers have numbers apart."""
    parts = [socket.gethostname()]
    for source in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            path = Path(source)
            parts.append(
                str(path.readlink()) if path.is_symlink() else path.read_text()
            )
        except OSError:
            continue
    return hashlib.blake2b(repr(parts).encode(), digest_size=4).hexdigest()


def _limit_files() -> list[Path]:
    """Return the files that may hold a limit: of this process's group and of all around it.

    A container sees its own group as the root; a batch job is somewhere below.
    """
    files = list(_LIMITS.values())
    try:
        groups = [line.split(":", 2) for line in _GROUPS.read_text().splitlines()]
    except OSError:  # not Linux
        return files
    for _, controllers, group in (parts for parts in groups if len(parts) == 3):
        root = next((_LIMITS[c] for c in controllers.split(",") if c in _LIMITS), None)
        if root is not None:
            parts = Path(group.lstrip("/")).parts
            below = (root.parent.joinpath(*parts[: i + 1]) for i in range(len(parts)))
            files += [folder / root.name for folder in below]
    return files


def cache_folder() -> Path:
    """Return the folder for what this user's processes keep between runs; it may not be there."""
    folder = (
        os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    )
    return Path(folder).expanduser() / "ontogeny"
