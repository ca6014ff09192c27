"""Bounded disk for Hub revisions: the next one downloads while one is used."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ..errors import CheckpointError, check_whole
from .checkpoint import Checkpoint
from .hub.client import stop_downloads_on
from .hub.revision import HubRevision, HubWeights
from .hub.slots import Slots, own_folder
from .trajectory import Trajectory

logger = logging.getLogger("ontogeny.trajectory")

_FOLDER = ".locks/ontogeny"  # huggingface_hub passes over .locks when it scans a cache
_POLL = 0.05  # seconds until it is tried again to download the next revision


class Prefetch:
    """Checkpoints of Hub revisions one after another, with a bound on what they take on disk.

    A thread downloads in the order of `steps`, as far ahead as the bound allows, into a private
    folder beside the Hub cache, which is deleted at the end. Revisions that the cache holds are
    read from there, and stay. Checkpoints that are not of the Hub pass through. Offline, nothing
    is fetched.

    The bound holds for all weights that are read through ``prefetch.trajectory``, in any order,
    from any thread, and by other processes that it is sent to::

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
        Downloaded revisions on disk at any time, at least 1; with 2, one is used and one
        downloads. With n workers that use several at once, n + 1. Checkpoints of a control need
        the first one too, so one place is kept for it; with 1, there are two places for them.
    max_bytes
        Bound on the bytes of their weights; a single revision may exceed it.
    tensors
        What is read of each checkpoint, by the names in its files: of weights in shards, only
        shards with these are downloaded. None means all.
    may_fetch
        Asked before a step is downloaded ahead; where it returns False, the step is downloaded
        when it is used, if at all.

    Attributes
    ----------
    trajectory
        The checkpoints, whose weights are only on disk while they are read; valid until the end.

    Raises
    ------
    ArgumentError
        If an argument is not as described.
    UnknownStepError
        If the trajectory does not have a step.

    Examples
    --------
    >>> import torch
    >>> trajectory = Trajectory.from_models(
    ...     {0: torch.nn.Linear(2, 1), 9: torch.nn.Linear(2, 1)}
    ... )
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
        tensors: Collection[str] | None = None,
        may_fetch: Callable[[int], bool] = lambda step: True,
    ) -> None:
        self._max_revisions = check_whole("max_revisions", max_revisions)
        self._max_bytes = (
            None if max_bytes is None else check_whole("max_bytes", max_bytes)
        )
        self._tensors = tensors
        self._may_fetch = may_fetch
        numbers = trajectory.steps.tolist() if steps is None else list(steps)
        self.steps: tuple[int, ...] = tuple(trajectory[step].step for step in numbers)
        self.trajectory = trajectory
        self._to_come: list[int] = []  # steps whose use has not begun, in their order
        self._ahead: set[int] = set()  # those of them that were downloaded
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Prefetch:
        """Delete what a killed run left, and begin to download."""
        source = next((c.source for c in self.trajectory if c.source is not None), None)
        if source is not None and not source.is_offline:
            folder = self._stack.enter_context(own_folder(source.cache / _FOLDER))
            self.trajectory = _bounded(self.trajectory, folder, self._count())
            self._to_come = [
                s for s in self.steps if self.trajectory[s].source is not None
            ]
            thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
            thread.start()
            self._stack.callback(thread.join)
            self._stack.callback(self._stop.set)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop downloading, and delete all that was downloaded."""
        self._stack.close()

    @contextmanager
    def use(self, step: int) -> Iterator[Checkpoint]:
        """Yield the checkpoint at `step`, downloaded, as it stays meanwhile.

        Raises
        ------
        UnknownStepError
            If there is no such step.
        CheckpointError
            If it cannot be downloaded, or too many are in use here already.
        """
        checkpoint = self.trajectory[step]
        with checkpoint.present(self._tensors) as there:
            with self._guard:
                if checkpoint.step in self._to_come:
                    self._to_come.remove(checkpoint.step)
                self._ahead.discard(checkpoint.step)
            yield there

    def keep(self, step: int) -> None:
        """Keep the revision of a step that is read now until it is used, as one fetched ahead."""
        with self._guard:
            if step in self._to_come:
                self._ahead.add(step)

    def _count(self) -> int:
        """Return how many revisions both bounds allow, were all of them as large as the largest."""
        if self._max_bytes is None:
            return self._max_revisions
        largest = max(
            1, *(_size(c.source) for c in self.trajectory if c.source is not None)
        )
        return min(self._max_revisions, max(1, self._max_bytes // largest))

    def _work(self) -> None:
        stop_downloads_on(self._stop)
        while not self._stop.is_set():
            with self._guard:
                step = next((s for s in self._to_come if s not in self._ahead), None)
            if step is None or not self._fetched(step):
                self._stop.wait(_POLL)

    def _fetched(self, step: int) -> bool:
        """Download `step` if a slot is free; return False if it is to be tried again."""
        source = self.trajectory[step].source
        assert source is not None
        with self._guard:
            keep = {
                s.commit
                for ahead in self._ahead
                if (s := self.trajectory[ahead].source)
            }
        try:
            if not source.has_room(keep):
                return False
            if not self._may_fetch(step):
                with self._guard:
                    self._to_come = [other for other in self._to_come if other != step]
                return True
            if not source.fetch_ahead(keep, self._tensors):
                return False
        except (CheckpointError, OSError) as error:  # raised again where it is used
            logger.debug("%s cannot be downloaded ahead: %s", source.name, error)
        with self._guard:
            if step in self._to_come:
                self._ahead.add(step)
        return True


def _bounded(trajectory: Trajectory, folder: Path, count: int) -> Trajectory:
    """Return the trajectory with Hub weights that are read through slots in `folder`.

    What a control reads of other steps than its own comes through a slot beside the others:
    whoever waits for it may hold one of those, and whoever holds it waits for nothing.
    """
    computed = any(checkpoint.is_computed for checkpoint in trajectory)
    slots = Slots(folder, max(1, count - 1) if computed else count)
    beside = Slots(folder, 1, "beside")

    def placed(checkpoint: Checkpoint) -> Checkpoint:
        if not checkpoint.is_computed:
            return _read_through(checkpoint, slots)
        here = checkpoint.home
        return checkpoint.derived_from(
            lambda c: _read_through(c, slots if c is here else beside)
        )

    return replace(trajectory, checkpoints=tuple(map(placed, trajectory)))


def _read_through(checkpoint: Checkpoint, slots: Slots) -> Checkpoint:
    weights = checkpoint.weights
    if not isinstance(weights, HubWeights):
        return checkpoint
    return checkpoint.moved(replace(weights.source, slots=slots))


def _size(source: HubRevision) -> int:
    try:
        return source.size()
    except CheckpointError:
        return 0  # its download raises the error
