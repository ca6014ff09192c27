"""From a plan to finished cells: which tasks there are, and in which order."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from ...store import drop_numbers
from ..cells import ahead
from ..cells.ahead import forget, sweep_killed
from ..cells.graph import ReferenceCell, SummaryCell
from ..planning.parts import RunPart
from ..progress import Pace, Progress
from .disk import Revisions
from .executors import Submitting, workers_here
from .handed import Exchange
from .mapping import TaskRunner, Work
from .run import Task
from .stages import Stages


def compute(
    parts: Sequence[RunPart],
    executor: Submitting | None,
    progress: Progress,
    max_revisions: int | None,
    exchange: Exchange = Exchange(),  # noqa: B008 - it cannot be changed
) -> list[str]:
    """Compute every cell that is to do, and return what went wrong, one line each."""
    begun = {part.begins_at for part in parts if part.begins_at is not None}
    # What is read ahead lies on this machine; bounded revisions are fetched in the order of tasks.
    is_kept = exchange.handed is not None
    options = (workers_here(executor), max_revisions is None, begun, is_kept)
    every = [Stages(part, turn, *options) for turn, part in enumerate(parts)]
    sizes = list(chain.from_iterable(stages.sizes for stages in every))
    progress.start(len(sizes), sum(part.plan.to_do for part in parts))
    pace = Pace(sizes)
    if hasattr(progress, "pace"):  # an object of a user's has four methods
        progress.pace = pace
    sweep_killed()
    try:
        exchange.begin(parts[0])
        if max_revisions is None:
            _Agenda(every, _at_once(parts, executor)).run(executor, progress, pace)
        else:
            for stages in every:
                revisions = stages.revisions(max_revisions)
                with revisions.at_work():
                    _Agenda([stages], 1, revisions).run(executor, progress, pace)
    finally:
        exchange.end(parts[0])
        for part in parts:
            forget(part.job.token)
    return list(chain.from_iterable(stages.lines() for stages in every))


def _at_once(parts: Sequence[RunPart], executor: Submitting | None) -> float:
    """Return how many tasks are under way before a further run begins.

    Where all that reads a checkpoint is done together, all runs begin at once.
    """
    return math.inf if parts[0].job.by_step else workers_here(executor) or math.inf


class _Agenda:
    """The tasks of all runs that are possible by now: what is finished makes others possible.

    A run begins when fewer tasks are under way than there are workers, if the files of what it
    reads ahead have room beside those of the runs before. Where runs waited for each other, one of
    two workers had nothing to do while the states of a control of SmolLM2 were fitted, 40 s each.
    """

    def __init__(
        self,
        every: Sequence[Stages],
        workers: float,
        revisions: Revisions | None = None,
    ) -> None:
        self._works: list[Work] = []
        self._of: dict[
            Work, tuple[Stages, str]
        ] = {}  # of each task that is not finished
        self._coming = deque(every)
        self._workers = workers
        self._begun = dict[Stages, Iterator[tuple[str, Sequence[Task]]]]()
        self._elsewhere = set[Work]()
        self._revisions = revisions
        self._fill()

    def run(self, executor: Submitting | None, progress: Progress, pace: Pace) -> None:
        """Compute all of it; what is finished, or done elsewhere, lets other tasks begin."""
        runner = TaskRunner(executor, self._revisions, progress.note)
        for work, done in runner.run(self._works):
            if done.taken_by:
                self._elsewhere.add(work)
            else:
                stages, kind = self._of.pop(work)
                self._elsewhere.discard(work)
                pace.add(kind, stages.size(kind, work.task), done.seconds)
                cells = sum(cell.observed for cell in work.task.cells)
                progress.advance(done.label, cells, done.seconds)
                stages.problems += done.problems
                stages.blocked.update(done.blocked)
                if not any(other is stages for other, _ in self._of.values()):
                    self._go_on(stages)
            self._fill()

    def _fill(self) -> None:
        while self._coming and len(self._of) - len(self._elsewhere) < self._workers:
            if (
                self._begun
                and sum(s.bytes for s in [*self._begun, self._coming[0]]) > ahead.LIMIT
            ):
                return
            stages = self._coming.popleft()
            self._begun[stages] = stages.in_order(self._revisions)
            self._go_on(stages)

    def _go_on(self, stages: Stages) -> None:
        """Add the tasks of the next stage of a run, before those of later runs."""
        for kind, tasks in self._begun[stages]:
            if works := [Work(stages.part.job, task) for task in tasks]:
                self._of |= dict.fromkeys(works, (stages, kind))
                self._works += works
                self._works.sort(key=self._place)
                return
        del self._begun[stages]

    def _place(self, work: Work) -> tuple[int, ...]:
        """Return what tasks are ordered by: by runs, or by checkpoints and then by runs.

        A control's first step comes late: it is copied from the run.
        """
        stages, kind = self._of[work]
        step = work.task.step
        by_step = work.job.by_step and self._revisions is None
        if by_step and step is not None:
            is_copied = stages.turn > 0 and step == stages.part.begins_at
            stage = 0 if kind == "first" else 1 + is_copied
            return stage, step, stages.turn
        # On disk, first of all.
        is_here = self._revisions is None or self._revisions.has(work.task)
        return 3 * by_step, stages.turn, not is_here


def summarise(parts: Sequence[RunPart], waiting: Callable[[str], None]) -> None:
    """Compute every summary that does not stand: of controls, then of the run, which reads them."""
    for part, generation in _generations(parts):
        tasks = [Task(cell.label, part.trajectory, (cell,)) for cell in generation]
        works = [Work(part.job, task) for task in tasks]
        list(TaskRunner(None, None, waiting).run(works))


def summaries_of(parts: Sequence[RunPart]) -> Iterator[tuple[Path, SummaryCell]]:
    """Give every summary of a study, with the folder that it lies in."""
    for part, generation in _generations(parts):
        yield from ((part.job.folder, cell) for cell in generation)


def _generations(
    parts: Sequence[RunPart],
) -> Iterator[tuple[RunPart, Sequence[SummaryCell]]]:
    """Give the summaries of each run in generations: those first that others depend on."""
    studied, *controls = parts
    graphs = [part.graph for part in controls]
    for part in [*controls, studied]:
        for generation in part.graph.summaries(graphs if part is studied else ()):
            yield part, generation


def save_digests(parts: Sequence[RunPart]) -> None:
    """Write the digests of weights that are known by now into the folders."""
    for part in parts:
        part.graph.digests.save()


def drop_references(controls: Sequence[RunPart]) -> None:
    """Drop what finished control runs were compared with, where their weights are at hand."""
    for part in [part for part in controls if part.drops_references]:
        for cell in part.graph.cells():
            if isinstance(cell, ReferenceCell):
                drop_numbers(part.job.folder / cell.place)
