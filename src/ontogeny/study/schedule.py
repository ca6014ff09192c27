"""From a plan to finished cells: tasks in their order, through an executor as they come."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ..capture import WeightBlock
from ..errors import StoreError
from ..store import Cell
from ..trajectory import Checkpoint, Trajectory
from ..trajectory.weights import MemoryWeights
from .build import Graph
from .claims import holder
from .controls import ControlRun
from .disk import Revisions
from .graph import BlockCell, LayerCell, StepCell, StudyCell, SummaryCell
from .plan import Plan
from .progress import Progress
from .readings import Job
from .run import Done, Task, left_of, run_task

_BLOCKS_PER_TASK = 8
_POLL = 0.5  # seconds until the claims of other processes are read again

Run: TypeAlias = Callable[[Job, Task], Done]


@dataclass(frozen=True)
class RunPart:
    """One run of a study, the one that is studied or a control, with what is to do of it."""

    name: str
    job: Job
    graph: Graph
    plan: Plan
    control: ControlRun | None = None

    @property
    def trajectory(self) -> Trajectory:
        """The checkpoints."""
        return self.graph.trajectory


def compute(
    parts: Sequence[RunPart],
    executor: Executor | None,
    progress: Progress,
    max_revisions: int | None,
) -> list[str]:
    """Compute every cell that is to do, and return what went wrong, one line each."""
    every = [_Stages(part) for part in parts]
    progress.start(sum(s.count for s in every), sum(part.plan.to_do for part in parts))
    problems: list[str] = []
    for stages in every:
        revisions = stages.revisions(max_revisions)
        problems += stages.run(executor, progress, revisions)
    return problems


class _Stages:
    """The tasks of one run: those of each stage read what those before have computed."""

    def __init__(self, part: RunPart) -> None:
        self.part = part
        plan, trajectory, name = part.plan, part.trajectory, part.name
        to_do = [e.cell for e in plan.entries if e.to_do]
        prepared = [e.cell for e in plan.prepared if e.to_do]
        self.first = _prepared(part.job, trajectory, prepared, name)
        self.steps = _steps(trajectory, [c for c in to_do if isinstance(c, StepCell)], name)
        self.blocks = _groups(
            [e.cell for e in plan.entries if isinstance(e.cell, BlockCell)], to_do
        )
        bare = _only(trajectory, ())
        self.layers = [Task(c.label, bare, (c,)) for c in to_do if isinstance(c, LayerCell)]

    @property
    def count(self) -> int:
        """Number of tasks."""
        return len(self.first) + len(self.steps) + len(self.blocks) + len(self.layers)

    def run(
        self, executor: Executor | None, progress: Progress, revisions: Revisions
    ) -> Iterator[str]:
        """Compute, and give what went wrong, one line each."""
        job, blocked = self.part.job, Counter[tuple[str, str]]()

        def stage(tasks: Sequence[Task]) -> Iterator[str]:
            counts = {task.label: sum(cell.observed for cell in task.cells) for task in tasks}
            for done in map_tasks(job, tasks, executor, revisions, progress.note):
                progress.advance(done.label, counts[done.label], done.seconds)
                yield from done.problems
                blocked.update(done.blocked)

        order = [task.step for task in (*self.first, *self.steps) if task.step is not None]
        with revisions.open(order):
            yield from stage(self.first)
            yield from stage(self.steps)
            if self.blocks:
                yield from stage(_blocks(self.blocks, revisions.trajectory_of_blocks()))
        yield from stage(self.layers)
        for (node, why), n in blocked.items():
            yield f"{_prefix(self.part.name)}{node}: failed in {n} cells: {why}"

    def revisions(self, max_revisions: int | None) -> Revisions:
        """Return the bound on the Hub revisions of this run."""
        part = self.part
        tensors = [cell.block.tensor for cells in self.blocks.values() for cell in cells]
        return Revisions(part.trajectory, max_revisions, tensors, part.job.folder / "retained")


def summarise(
    parts: Sequence[RunPart], read: Callable[[Path], Cell], waiting: Callable[[str], None]
) -> None:
    """Compute every summary that does not stand: of controls, then of the run, which reads them."""
    studied, *controls = parts
    for part in controls:
        _summarise(part, part.graph.summaries(), read, waiting)
    of_run = studied.graph.summaries([part.graph for part in controls])
    _summarise(studied, of_run, read, waiting)


def _summarise(
    part: RunPart,
    generations: Sequence[Sequence[SummaryCell]],
    read: Callable[[Path], Cell],
    waiting: Callable[[str], None],
) -> None:
    """Compute the summaries of one run, those first that others depend on."""
    revisions = Revisions(part.trajectory, None, (), part.job.folder)
    for generation in generations:
        tasks = [Task(cell.label, part.trajectory, (cell,)) for cell in generation]
        here = partial(run_task, read=read)
        list(map_tasks(part.job, tasks, None, revisions, waiting, here))


def save_digests(parts: Sequence[RunPart]) -> None:
    """Write the digests of weights that are known by now into the folders."""
    for part in parts:
        part.graph.digests.save()


def _prefix(name: str) -> str:
    return f"{name}: " if name else ""


def _prepared(
    job: Job, trajectory: Trajectory, cells: Sequence[StudyCell], name: str
) -> list[Task]:
    """Return the task of references and states, which read the reference step together."""
    step, label = job.settings.reference_step, f"{_prefix(name)}references"
    return [Task(label, trajectory, tuple(cells), step, any_step=True)] if cells else []


def _steps(trajectory: Trajectory, cells: Sequence[StepCell], name: str) -> list[Task]:
    steps: dict[int, list[StepCell]] = {}
    for cell in cells:
        steps.setdefault(int(cell.key), []).append(cell)
    return [
        Task(f"{_prefix(name)}step {step}", trajectory.select(steps=[step]), tuple(each), step)
        for step, each in sorted(steps.items())
    ]


def _groups(
    blocks: Sequence[BlockCell], to_do: Sequence[StudyCell]
) -> dict[str, tuple[BlockCell, ...]]:
    """Return blocks in groups with a name, the same ones whatever of them is done already.

    So processes that begin at different times mean the same by a name.
    """
    places = {cell.place for cell in to_do}
    groups: dict[str, tuple[BlockCell, ...]] = {}
    for start in range(0, len(blocks), _BLOCKS_PER_TASK):
        group = blocks[start : start + _BLOCKS_PER_TASK]
        label = f"weights {start + 1}-{start + len(group)} of {len(blocks)}"
        if left := tuple(cell for cell in group if cell.place in places):
            groups[label] = left
    return groups


def _blocks(groups: dict[str, tuple[BlockCell, ...]], trajectory: Trajectory) -> list[Task]:
    return [
        Task(label, _only(trajectory, [cell.block for cell in cells]), cells)
        for label, cells in groups.items()
    ]


def _only(trajectory: Trajectory, blocks: Iterable[WeightBlock]) -> Trajectory:
    """Return the trajectory with no more of models in memory than these blocks.

    A task that goes to another process would carry whole models otherwise.
    """
    names = {block.tensor for block in blocks}
    checkpoints = [
        replace(c, weights=_some(c, names), template=None)
        if isinstance(c.weights, MemoryWeights)
        else c
        for c in trajectory
    ]
    return replace(trajectory, checkpoints=tuple(checkpoints), given_tokenizer=None)


def _some(checkpoint: Checkpoint, names: set[str]) -> MemoryWeights:
    with checkpoint.open() as reader:
        tensors = {name: reader.get(name) for name in names.intersection(reader.names())}
    # A view would take the whole of its storage with it.
    return MemoryWeights(
        {
            n: t if t.untyped_storage().nbytes() == t.nbytes else t.clone()
            for n, t in tensors.items()
        }
    )


def map_tasks(
    job: Job,
    tasks: Sequence[Task],
    executor: Executor | None,
    revisions: Revisions,
    waiting: Callable[[str], None],
    here: Run = run_task,
) -> Iterator[Done]:
    """Run tasks here, or in the executor as they come; stopping cancels what has not begun.

    What other processes work on is waited for, and done here if they die; `waiting` receives a
    line about it. Where revisions are bounded, a task is submitted when its revision is on disk,
    and its revision is held until it is finished.
    """
    left, noted = list(tasks), False
    while left:
        taken: dict[str, str] = {}
        for done in _once(job, left, executor, revisions, here):
            if done.taken_by:
                taken[done.label] = done.taken_by
            else:
                yield done
        if taken and not noted:
            label, who = next(iter(taken.items()))
            others = f" and {len(taken) - 1} more tasks" if len(taken) > 1 else ""
            waiting(f"waiting for {label}{others}, which {who} computes in this folder")
            noted = True
        left = [task for task in left if task.label in taken]
        while left:
            time.sleep(_POLL)
            if not all(holder(job.folder, task.label) for task in left):
                break


def _once(
    job: Job, tasks: Sequence[Task], executor: Executor | None, revisions: Revisions, here: Run
) -> Iterator[Done]:
    """Run all tasks that no other process works on."""
    if executor is None:
        for task in tasks:
            yield _held(job, task, revisions, here)
        return
    if revisions.at_once is None:
        yield from _collect([(executor.submit, (run_task, job, task)) for task in tasks])
        return

    def there(job: Job, task: Task) -> Done:
        return executor.submit(run_task, job, task).result()

    with ThreadPoolExecutor(revisions.at_once) as holders:
        yield from _collect([(holders.submit, (_held, job, t, revisions, there)) for t in tasks])


def _held(job: Job, task: Task, revisions: Revisions, run: Run) -> Done:
    """Run a task while its revision is on disk; nothing is fetched for one that needs no work."""
    if revisions.at_once is not None:
        taken_by = holder(job.folder, task.label)
        if taken_by or not left_of(job, task):
            return Done(task.label, taken_by=taken_by)
    with revisions.held(task) as held:
        return run(job, held)


def _collect(calls: Sequence[tuple[Callable[..., object], tuple[object, ...]]]) -> Iterator[Done]:
    futures: list = []
    try:
        futures += (submit(*arguments) for submit, arguments in calls)
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        raise StoreError(
            "a worker process died (out of memory, or killed); finished cells are kept, "
            "and the same command goes on from there."
        ) from error
    finally:
        for future in futures:
            future.cancel()
