"""Tasks one after another or through an executor, shared with other processes in the folder.

A process that dies takes its whole pool with it. Which tasks were being worked on is known by their
claims. These are tried once more, each alone in a new pool: one that kills that as well has failed.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ... import activity
from ...errors import StoreError
from ..cells.models import Job
from ..folder.claims import claimed, holder, is_abandoned, sweep_claims
from .disk import Revisions
from .executors import Submitting, submitted, workers_here
from .run import Done, Task, compute_task, give_up, left_of, run_task, taken

_TRIES = 2
KILLED = "the worker process that computed it was killed twice; it may need more memory"


@dataclass(frozen=True, eq=False)
class Work:
    """A task of a run, one of several whose tasks are in one list."""

    job: Job
    task: Task


Submit: TypeAlias = Callable[[ProcessPoolExecutor, Work], Future[Done]]


def compute_in_worker(job: Job, task: Task) -> Done:
    """Compute a task that another process has claimed, with a note that this one is at it."""
    with claimed(job.folder, _at_work(task)):
        return compute_task(job, task)


def _at_work(task: Task) -> str:
    return f"{task.label} in a worker"


def run_in_processes(
    works: list[Work],
    executor: ProcessPoolExecutor,
    submit: Submit,
    at_once: float = math.inf,
) -> Iterator[tuple[Work, Done]]:
    """Run tasks in a pool, and in new ones like it where a worker died.

    Parameters
    ----------
    works
        What is run: what is finished is taken out, and whoever is given that may add to it.
    executor
        The pool, which stays as it is if no worker dies.
    submit
        Submits a task to a pool: `run_task`, or `compute_in_worker` where it is claimed here.
    at_once
        How many are submitted at a time.

    Raises
    ------
    StoreError
        If workers died that were at no task.
    """
    deaths = Counter[Work]()
    pool = executor
    try:
        while works:
            # Several tasks are under way when a pool breaks, and any may have killed its worker:
            # suspects run alone, so that a second death is surely their own.
            begun = [work for work in works if deaths[work]][:1] or works
            with suppress(BrokenProcessPool):  # of what is submitted then
                for work, future in _finished(begun, partial(submit, pool), at_once):
                    with suppress(BrokenProcessPool, CancelledError):
                        done = future.result()
                        works.remove(work)
                        yield work, done
            if not (unfinished := [work for work in begun if work in works]):
                continue
            pool.shutdown()  # its other processes have ended after that
            killers = [work for work in unfinished if _was_left(work)]
            if not killers:
                raise StoreError(
                    "a worker process died (out of memory, or killed) before it began with a task; "
                    "finished cells are kept, and the same command goes on from there."
                )
            for work in killers:
                deaths[work] += 1
                sweep_claims(work.job.folder)
                if deaths[work] == _TRIES:
                    works.remove(work)
                    yield work, give_up(work.job, work.task, KILLED)
            pool = _like(executor)
    finally:
        if pool is not executor:
            pool.shutdown(cancel_futures=True)


def _was_left(work: Work) -> bool:
    """Return whether a worker died while it was at a task."""
    labels = (work.task.label, _at_work(work.task))
    return any(is_abandoned(work.job.folder, label) for label in labels)


def _finished(
    works: Sequence[Work],
    submit: Callable[[Work], Future[Done]],
    at_once: float = math.inf,
    patience: Callable[[], None] | None = None,
) -> Iterator[tuple[Work, Future[Done]]]:
    """Submit tasks, also those that are added meanwhile, and give what is finished.

    `patience` is called if nothing is finished at first for a while.
    """
    futures: dict[Future[Done], Work] = {}
    begun = set[Work]()
    try:
        while True:
            for work in [work for work in works if work not in begun]:
                if len(futures) < at_once:
                    begun.add(work)
                    futures[submit(work)] = work
            if not futures:
                return
            done = wait(futures, _PATIENCE if patience else None, FIRST_COMPLETED).done
            if not done and patience:
                patience()
            patience = None
            for future in done:
                yield futures.pop(future), future
    finally:
        for future in futures:
            future.cancel()


def _like(pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """Return a new pool with the same number of processes, started in the same way."""
    return ProcessPoolExecutor(
        workers_here(pool),
        pool._mp_context,
        initializer=pool._initializer,
        initargs=pool._initargs,
    )


_PATIENCE = 60.0  # seconds until it is said that no task has begun
_POLL = 0.5  # seconds until the claims of other processes are read again

Run: TypeAlias = Callable[[Job, Task], Done]


@dataclass(frozen=True)
class TaskRunner:
    """How tasks are run: here, or in the executor as they come; stopping cancels what waits.

    Where revisions are bounded, a task is submitted when its revision is on disk, and its revision
    is held until it is finished. `waiting` receives a line about what other processes work on.
    """

    executor: Submitting | None
    revisions: Revisions | None
    waiting: Callable[[str], None]

    def run(self, works: list[Work]) -> Iterator[tuple[Work, Done]]:
        """Run tasks until none is left; whoever is given a finished one may add to them.

        What other processes work on is given too, as taken. It is waited for when nothing else is
        left, and done here if they die.
        """
        noted = False
        while works:
            elsewhere: dict[Work, str] = {}
            for work, done in self._once(works):
                if done.taken_by:
                    elsewhere[work] = done.taken_by
                yield work, done
            if elsewhere and not noted:
                first, who = next(iter(elsewhere.items()))
                others = (
                    f" and {len(elsewhere) - 1} more tasks"
                    if len(elsewhere) > 1
                    else ""
                )
                label = f"{first.task.label}{others}"
                self.waiting(
                    f"waiting for {label}, which {who} computes in this folder"
                )
                noted = True
            works += elsewhere
            # Until one claim is gone: its task is finished, or its holder died and it is done here.
            while works:
                time.sleep(_POLL)
                if not all(holder(work.job.folder, work.task.label) for work in works):
                    break

    def _once(self, works: list[Work]) -> Iterator[tuple[Work, Done]]:
        """Run all tasks that no other process works on, and take them out."""
        executor = self.executor
        revisions = self.revisions
        if executor is not None:
            activity.now(partial(_under_way, works))
        if revisions is not None and executor is not None:
            yield from self._held_here(works, executor, revisions)
        elif isinstance(executor, ProcessPoolExecutor):
            at_once = workers_here(executor)
            yield from run_in_processes(works, executor, _submit, at_once)
        elif executor is not None:
            yield from self._collect(works, partial(_submit, executor))
        else:
            step: int | None = None
            while works:
                work = works.pop(_next(works, step))
                if revisions is None:
                    done = run_task(work.job, work.task)
                    step = step if done.taken_by else work.task.step
                    yield work, done
                else:
                    yield work, _bounded(work, revisions, compute_task)

    def _held_here(
        self, works: list[Work], executor: Submitting, revisions: Revisions
    ) -> Iterator[tuple[Work, Done]]:
        """Run tasks in the executor, each while a thread of this process holds its revision."""

        def submit(pool: Submitting, work: Work) -> Future[Done]:
            run = (
                compute_in_worker
                if isinstance(pool, ProcessPoolExecutor)
                else compute_task
            )

            def there(job: Job, task: Task) -> Done:
                return submitted(pool, run, job, task).result()

            return holders.submit(_bounded, work, revisions, there)

        with ThreadPoolExecutor(revisions.at_once) as holders:
            if isinstance(executor, ProcessPoolExecutor):
                yield from run_in_processes(works, executor, submit)
            else:
                yield from self._collect(works, partial(submit, executor))

    def _collect(
        self, works: list[Work], submit: Callable[[Work], Future[Done]]
    ) -> Iterator[tuple[Work, Done]]:
        """Give what the call of each task returns as it comes."""

        def patience() -> None:
            if not any(holder(work.job.folder, work.task.label) for work in works):
                self.waiting(
                    f"no task has begun for {_PATIENCE:.0f} s: do the executor's workers start? A "
                    "batch system lets jobs wait, without an error, that ask for what it has not."
                )

        try:
            for work, future in _finished(works, submit, patience=patience):
                works.remove(work)
                yield work, self._result(work, future)
        except BrokenProcessPool as error:
            # Of a pool that is not the standard library's.
            raise StoreError(
                "a worker process died (out of memory, or killed); finished cells are kept, "
                "and the same command goes on from there."
            ) from error

    def _result(self, work: Work, future: Future[Done]) -> Done:
        try:
            return future.result()
        except Exception as error:
            # As Dask calls it, which has tried some times; it need not be installed here.
            if type(error).__name__ != "KilledWorker":
                raise
            return give_up(work.job, work.task, KILLED)


def _next(works: Sequence[Work], step: int | None) -> int:
    """Return the place of the next task: the first one, or one of a checkpoint that is at hand.

    Where all that reads a checkpoint is done together, other processes have theirs.
    """
    if not works[0].job.by_step:
        return 0
    for other in dict.fromkeys(work.task.step for work in works):
        places = [i for i, work in enumerate(works) if work.task.step == other]
        held = (holder(works[i].job.folder, works[i].task.label) for i in places)
        if other == step or not any(held):
            return places[0]
    return 0


def _submit(executor: Submitting, work: Work) -> Future[Done]:
    return submitted(executor, run_task, work.job, work.task)


def _under_way(works: Sequence[Work]) -> str:
    """Return which tasks processes work on, in words."""
    claimed = [w.task.label for w in list(works) if holder(w.job.folder, w.task.label)][
        :5
    ]
    return f"computing {', '.join(claimed)}" if claimed else "starting processes"


def _bounded(work: Work, revisions: Revisions, compute: Run) -> Done:
    """Claim a task, and compute it while its revision is on disk.

    So nothing is fetched for what another process computes, or what needs no work.
    """
    job = work.job
    task = work.task
    with revisions.claimed(task) as ours:
        if not ours:
            return taken(job, task)
        if not left_of(job, task):
            return Done(task.label)
        with revisions.held(task) as trajectory:
            return compute(job, trajectory)
