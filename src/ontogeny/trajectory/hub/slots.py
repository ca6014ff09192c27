"""A bound on the Hub revisions on disk: as many folders as there may be, each for one at a time.

Whoever reads a revision holds the lock of the slot that it lies in, threads and other processes
alike, so that there are never more than there are slots. The system frees the locks of a process
that dies, however it dies.
"""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from ...errors import CheckpointError

T = TypeVar("T")

_POLL = 0.05  # seconds until a slot that another process holds is tried again


@dataclass
class _Held:
    """A slot that this process holds, and the threads that use it."""

    commit: str
    lock: FileLock
    threads: list[int] = field(default_factory=list)
    filling: threading.Lock = field(default_factory=threading.Lock)


_slots: dict[Path, _Held] = {}
_changed = threading.Condition()


def _forget_held() -> None:
    """Begin anew in a forked process: what its parent holds is not its own."""
    global _slots, _changed
    # A lock that is collected would be freed for the parent too.
    _inherited.append(_slots)
    _slots = {}
    _changed = threading.Condition()


_inherited: list[dict[Path, _Held]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_held)


@dataclass(frozen=True)
class Slots:
    """A folder with room for `count` revisions; it can be pickled and sent to other processes.

    Slots of several names can lie in one folder.
    """

    folder: Path
    count: int
    name: str = "slot"

    @contextmanager
    def hold(self, commit: str, fill: Callable[[Path], T]) -> Iterator[T]:
        """Yield what `fill` makes of a folder for `commit`, which stays as it is meanwhile.

        Raises
        ------
        CheckpointError
            If this thread itself holds all slots, or `fill` raises it.
        """
        with _changed:
            while (slot := self._take(commit)) is None:
                self._check_free()
                _changed.wait(_POLL)
        with self._using(slot, commit, fill) as filled:
            yield filled

    def fill(self, commit: str, fill: Callable[[Path], object], keep: Set[str]) -> bool:
        """Fill a slot that nobody uses and that has no commit of `keep`; return if there is one."""
        with _changed:
            slot = self._take(commit, keep)
        if slot is None:
            return False
        with self._using(slot, commit, fill):
            return True

    def has_room(self, keep: Set[str]) -> bool:
        """Return whether a slot is unused here and has no commit of `keep`."""
        with _changed:
            free = [slot for slot in self._places() if slot not in _slots]
        return any(keep.isdisjoint(_contents(slot)) for slot in free)

    @contextmanager
    def _using(self, slot: Path, commit: str, fill: Callable[[Path], T]) -> Iterator[T]:
        """Fill a slot that was taken, give what is in it, and leave the slot."""
        entry = _slots[slot]
        try:
            # Other threads that use the same revision wait for it here.
            with entry.filling:
                for other in _contents(slot):
                    if other != commit:
                        shutil.rmtree(slot / other)
                filled = fill(slot / commit)
            yield filled
        finally:
            with _changed:
                entry.threads.remove(threading.get_ident())
                if not entry.threads:
                    del _slots[slot]
                    entry.lock.release()
                _changed.notify_all()

    def _take(self, commit: str, keep: Set[str] = frozenset()) -> Path | None:
        """Return a slot for `commit`, now held by this process, or None where all are in use."""
        slots = self._places()
        for slot in slots:
            if slot in _slots and _slots[slot].commit == commit:
                _slots[slot].threads.append(threading.get_ident())
                return slot
        contents = {slot: _contents(slot) for slot in slots if slot not in _slots}
        # What is there already is best, then an empty slot, then one whose commit is not needed.
        for slot in sorted(
            contents, key=lambda s: (commit not in contents[s], len(contents[s]))
        ):
            if commit not in contents[slot] and not keep.isdisjoint(contents[slot]):
                continue
            lock = FileLock(slot.with_suffix(".lock"), thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            _slots[slot] = _Held(commit, lock, [threading.get_ident()])
            return slot
        return None

    def _places(self) -> list[Path]:
        return [self.folder / f"{self.name}-{number}" for number in range(self.count)]

    def _check_free(self) -> None:
        """Refuse to wait for a slot that the waiting thread itself would have to leave."""
        here = threading.get_ident()
        slots = [slot for slot in self._places() if slot in _slots]
        if len(slots) == self.count and all(
            set(_slots[slot].threads) == {here} for slot in slots
        ):
            revisions = "revision" if self.count == 1 else "revisions"
            raise CheckpointError(
                f"max_revisions={self.count} allows {self.count} open {revisions}, and this "
                "thread has as many open; close one first."
            )


def _contents(slot: Path) -> list[str]:
    """Return the commits of which anything is in a slot: one at most, but for a moment none."""
    try:
        return [path.name for path in slot.iterdir()]
    except FileNotFoundError:
        return []


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder in `parent`, deleted in the end; delete what killed processes left.

    Raises
    ------
    CheckpointError
        If nothing can be written there.
    """
    folder = parent / uuid.uuid4().hex
    try:
        parent.mkdir(parents=True, exist_ok=True)
        remove_stale(parent)
        folder.with_suffix(".lock").touch()
    except OSError as error:
        why = f"cannot be written to ({error.strerror}), as a bound on revisions needs"
        raise CheckpointError(
            f"{parent} {why}; name another HF_HUB_CACHE or cache_dir."
        ) from error
    lock = FileLock(folder.with_suffix(".lock"), thread_local=False)
    # Taken before the folder exists, so that no other process takes it for stale.
    with lock:
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
            Path(lock.lock_file).unlink(missing_ok=True)


def remove_stale(parent: Path) -> None:
    """Delete folders whose process has ended, unless one of its workers still reads from a slot."""
    for folder in parent.iterdir():
        if not folder.is_dir():
            continue
        lock = folder.with_suffix(".lock")
        # Held, or of another user of the cache.
        with ExitStack() as stack, suppress(OSError):
            for path in (lock, *folder.glob("*.lock")):
                stack.enter_context(FileLock(path).acquire(timeout=0))
            shutil.rmtree(folder, ignore_errors=True)
            lock.unlink(missing_ok=True)
