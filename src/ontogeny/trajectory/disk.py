"""Disk for Hub revisions: the next one downloads while one is used, ours are deleted afterwards.

What is ours is noted in a ledger before it is fetched, so that a run that was killed leaves
nothing for good: the next one over the same cache deletes it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from ..errors import ArgumentError, CheckpointError
from .checkpoint import Checkpoint
from .hub import HubRevision, watch_downloads
from .hub_client import InterruptedDownloadError, is_offline, stop_downloads_on
from .ledger import Ledger
from .trajectory import Trajectory

__all__ = ["Prefetch"]


class Prefetch:
    """Checkpoints of Hub revisions one after another, with a bound on what they take on disk.

    A thread downloads in the order of `steps`, as far ahead as the bounds allow. What was in the
    cache before stays; what is fetched while this is open is deleted through huggingface_hub's
    own cache functions: a revision when its use ends, the rest at the end. Checkpoints that are
    not of the Hub pass through. Offline, nothing is fetched and nothing deleted.

    Use it from one process. Worker processes find the files in the cache while `use` lasts here::

        with Prefetch(trajectory) as prefetch:
            for step in prefetch.steps:
                with prefetch.use(step) as checkpoint:
                    ...

    Parameters
    ----------
    trajectory
        The checkpoints.
    steps
        Order of use; a step can come several times. By default all, increasing.
    max_revisions
        Revisions of ours on disk at any time, at least 1; with 2, one is used and one downloads.
        With n workers that use several at once, n + 1.
    max_bytes
        Bound on the bytes of our weights on disk; a single revision may exceed it.

    Raises
    ------
    ArgumentError
        If an argument is not as described.
    UnknownStepError
        If the trajectory does not have a step.

    Examples
    --------
    >>> import torch
    >>> trajectory = Trajectory.from_models({0: torch.nn.Linear(2, 1), 9: torch.nn.Linear(2, 1)})
    >>> with Prefetch(trajectory) as prefetch:
    ...     for step in prefetch.steps:
    ...         with prefetch.use(step) as checkpoint:
    ...             print(checkpoint.label)
    step 0
    step 9
    """

    def __init__(
        self,
        trajectory: Trajectory,
        steps: Iterable[int] | None = None,
        *,
        max_revisions: int = 2,
        max_bytes: int | None = None,
    ) -> None:
        for name, value in (("max_revisions", max_revisions), ("max_bytes", max_bytes)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ArgumentError(f"{name} must be a whole number above 0; got {value!r}.")
        chosen = trajectory.steps.tolist() if steps is None else list(steps)
        self.steps: tuple[int, ...] = tuple(trajectory[step].step for step in chosen)
        self._trajectory = trajectory
        self._max_revisions, self._max_bytes = max_revisions, max_bytes
        self._queue = [s for step in self.steps if (s := self._source(step)) is not None]
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._held: dict[HubRevision, int] = {}  # downloaded for use, and how many use it
        self._spent: list[HubRevision] = []  # to be deleted
        self._wanted: Counter[HubRevision] = Counter()  # waited for
        self._loading: HubRevision | None = None
        self._broken: Exception | None = None
        self._errors: dict[HubRevision, CheckpointError] = {}
        self._ledgers: dict[Path, Ledger] = {}
        self._stack = ExitStack()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Prefetch:
        """Delete what a killed run left, and begin to download."""
        for source in self._queue:
            if source.cache not in self._ledgers and not self._is_offline(source):
                self._ledgers[source.cache] = self._stack.enter_context(Ledger(source.cache))
        if self._ledgers:
            self._stack.enter_context(watch_downloads(self._note))
            self._thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop downloading, and delete all that was fetched meanwhile."""
        with self._stack:
            self._stop.set()
            with self._changed:
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join()
            for ledger in self._ledgers.values():
                for folder in ledger.entries():
                    ledger.delete(folder)

    @contextmanager
    def use(self, step: int) -> Iterator[Checkpoint]:
        """Give the checkpoint at `step`, downloaded; afterwards it may be deleted.

        Raises
        ------
        UnknownStepError
            If there is no such step.
        CheckpointError
            If it cannot be downloaded.
        """
        checkpoint = self._trajectory[step]
        source = self._source(step)
        if source is None or self._is_offline(source):
            yield checkpoint
            return
        self._wait(source)
        try:
            yield checkpoint
        finally:
            self._release(source)

    def _source(self, step: int) -> HubRevision | None:
        return self._trajectory[step].source

    def _is_offline(self, source: HubRevision) -> bool:
        return source.offline or is_offline()

    def _note(self, source: HubRevision, name: str) -> None:
        """Write down that a file is about to be fetched by us."""
        ledger = self._ledgers.get(source.cache)
        if ledger is not None:
            ledger.add(source.path, name, source.listing()[name].digest)

    def _wait(self, source: HubRevision) -> None:
        """Wait until `source` is on disk, and count this use of it."""
        with self._changed:
            self._wanted[source] += 1
            if source not in self._held and source != self._loading:
                if source in self._queue:  # used out of order
                    self._queue.remove(source)
                self._queue.insert(0, source)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: source in self._held or source in self._errors or self._broken is not None
            )
            self._wanted[source] -= 1
            if source in self._errors:
                raise self._errors.pop(source)
            if self._broken is not None:
                raise CheckpointError(f"prefetching broke: {self._broken}") from self._broken
            self._held[source] += 1

    def _release(self, source: HubRevision) -> None:
        with self._changed:
            self._held[source] -= 1
            unused = self._held[source] == 0 and not self._wanted[source]
            if unused and source != self._loading:  # else it is about to be held for its next use
                self._let_go(source)

    def _let_go(self, source: HubRevision) -> None:
        del self._held[source]
        self._spent.append(source)
        self._changed.notify_all()

    def _work(self) -> None:
        stop_downloads_on(self._stop)
        try:
            while self._work_once():
                pass
        except Exception as error:  # whoever waits must hear of it
            with self._changed:
                self._broken = error
                self._changed.notify_all()

    def _work_once(self) -> bool:
        """Delete or download, one after the other, so that the two never meet."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stop.is_set() or self._spent or self._room() or self._in_the_way()
            )
            if self._stop.is_set():
                return False
            for source in self._in_the_way():
                self._let_go(source)
            spent, self._spent = self._spent, []
            self._loading = None if spent or not self._room() else self._queue.pop(0)
        for source in spent:
            self._delete(source)
        if self._loading is not None:
            self._download(self._loading)
        return True

    def _in_the_way(self) -> list[HubRevision]:
        """Return what was prefetched, is not used, and takes the room of what is waited for."""
        if not self._queue or not self._wanted[self._queue[0]] or self._room():
            return []
        return [s for s, uses in self._held.items() if not uses and not self._wanted[s]]

    def _room(self) -> bool:
        """Return whether the next revision in the queue may be downloaded now."""
        if not self._queue:
            return False
        following = self._queue[0]
        ours = [source for source in self._held if self._is_ours(source)]
        if following in self._held or not ours:
            return True
        if len(ours) >= self._max_revisions:
            return False
        sizes = (self._size(source) for source in (*ours, following))
        return self._max_bytes is None or sum(sizes) <= self._max_bytes

    def _size(self, source: HubRevision) -> int:
        try:
            return source.size()
        except CheckpointError:
            return 0  # its download will say why

    def _is_ours(self, source: HubRevision) -> bool:
        return source.path in self._ledgers[source.cache].entries()

    def _download(self, source: HubRevision) -> None:
        failed = None
        try:
            self._fetch(source)
        except InterruptedDownloadError:
            return
        except CheckpointError as error:
            failed = error
            self._delete(source)
        with self._changed:
            self._loading = None
            if failed is None:
                self._held.setdefault(source, 0)
            else:
                self._errors[source] = failed
            self._changed.notify_all()

    def _fetch(self, source: HubRevision) -> None:
        """Download what is not there, and keep other processes from deleting what they fetched."""
        while True:
            source.download()
            self._ledgers[source.cache].share(source.path)
            if not source.missing():
                return  # else one of them has deleted it in between

    def _delete(self, source: HubRevision) -> None:
        self._ledgers[source.cache].delete(source.path)
