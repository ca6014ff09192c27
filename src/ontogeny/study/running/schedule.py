"""From a plan to finished cells: which tasks there are, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from ...capture.blocks import WeightBlock
from ...store import drop_numbers
from ...trajectory import Checkpoint, Trajectory
from ...trajectory.weights import MemoryWeights
from ..cells.ahead import LIMIT, forget, shares_passes, sweep_killed
from ..cells.graph import BlockCell, LayerCell, ReferenceCell, StateCell, StepCell, StudyCell
from ..cells.models import own_needs
from ..planning.build import Graph
from ..planning.parts import RunPart
from ..progress import Pace, Progress
from .disk import Revisions
from .executors import Submitting, workers_here
from .mapping import TaskRunner
from .run import Task

_BLOCKS_PER_TASK = 8


def compute(
    parts: Sequence[RunPart],
    executor: Submitting | None,
    progress: Progress,
    max_revisions: int | None,
) -> list[str]:
    """Compute every cell that is to do, and return what went wrong, one line each."""
    # What is read ahead lies on this machine; a timed checkpoint has its passes in its own time.
    workers = workers_here(executor) if getattr(progress, "reads_ahead", True) else 0
    # Threads wait for each other in Python; bounded revisions are fetched in the order of tasks.
    in_parallel = isinstance(executor, ProcessPoolExecutor) and workers > 1 and not max_revisions
    every = [_Stages(part, workers > 0, in_parallel) for part in parts]
    tasks = [task for stages in every for task in stages.sizes]
    progress.start(len(tasks), sum(part.plan.to_do for part in parts))
    pace = Pace(tasks)
    if hasattr(progress, "pace"):  # an object of a user's has four methods
        progress.pace = pace
    problems: list[str] = []
    sweep_killed()
    try:
        for stages in every:
            problems += stages.run(executor, progress, max_revisions, pace)
    finally:
        for part in parts:
            forget(part.job.token)
    return problems


class _Stages:
    """The tasks of one run: those of each stage read what those before have computed."""

    def __init__(self, part: RunPart, ahead: bool, in_parallel: bool) -> None:
        self.part = part
        plan, trajectory, graph = part.plan, part.trajectory, part.graph
        to_do = [e.cell for e in plan.entries if e.to_do]
        prepared = tuple(e.cell for e in plan.prepared if e.to_do)
        # References and states are one task, as they read the reference step together.
        reference, label = part.job.settings.reference_step, graph.label("references")
        self.steps = _steps(graph, [c for c in to_do if isinstance(c, StepCell)])
        later = {
            int(str(task.step)): tuple(need for c in task.cells for need in c.needs(graph.by_name))
            for task in self.steps
            if ahead
        }
        first = Task(label, trajectory, prepared, reference, any_step=True, later=later)
        self.first = [first] if prepared else []
        self.ahead = _ahead(graph, prepared, later, self.steps) if in_parallel else []
        self.blocks = _groups(
            [e.cell for e in plan.entries if isinstance(e.cell, BlockCell)], to_do
        )
        bare = _only(trajectory, ())
        self.layers = [Task(c.label, bare, (c,)) for c in to_do if isinstance(c, LayerCell)]

    @property
    def sizes(self) -> Iterator[tuple[str, float]]:
        """Kind and size of every task."""
        first = [*self.ahead, *self.first]
        for kind, tasks in (("first", first), ("steps", self.steps), ("layers", self.layers)):
            yield from ((kind, _size(kind, task.cells)) for task in tasks)
        yield from (("blocks", _size("blocks", cells)) for cells in self.blocks.values())

    def run(
        self, executor: Submitting | None, progress: Progress, max_revisions: int | None, pace: Pace
    ) -> Iterator[str]:
        """Compute, and give what went wrong, one line each."""
        job, trajectory = self.part.job, self.part.trajectory
        blocked = Counter[tuple[str, str]]()
        tensors = [cell.block.tensor for cells in self.blocks.values() for cell in cells]
        of_steps = [*self.first, *self.steps]

        def stage(kind: str, tasks: Sequence[Task]) -> Iterator[str]:
            counts = {task.label: sum(cell.observed for cell in task.cells) for task in tasks}
            sizes = {task.label: _size(kind, task.cells) for task in tasks}
            for done in runner.run(tasks):
                pace.add(kind, sizes[done.label], done.seconds)
                progress.advance(done.label, counts[done.label], done.seconds)
                yield from done.problems
                blocked.update(done.blocked)

        revisions = None
        if max_revisions is not None:
            revisions = Revisions(job, trajectory, of_steps, max_revisions, tensors)
        runner = TaskRunner(job, executor, revisions, progress.note)
        with nullcontext() if revisions is None else revisions.at_work():
            yield from stage("first", self.ahead)
            yield from stage("first", self.first)
            yield from stage("steps", self.steps)
            if self.blocks:
                if revisions is not None:
                    trajectory = revisions.trajectory_of_blocks()
                yield from stage("blocks", _blocks(self.blocks, trajectory))
        yield from stage("layers", self.layers)
        for (node, why), n in blocked.items():
            yield self.part.graph.label(f"{node}: failed in {n} cells: {why}")


def _size(kind: str, cells: Sequence[StudyCell]) -> float:
    """Return how many cells there are; one with noise floors is computed some times.

    References and states of a run are one: where a study went on with all but one state, that took
    7 minutes, and 36 such cells of its controls made 5 hours of the rest.
    """
    sizes = (2.0 if cell.components.get("noise") else 1.0 for cell in cells)
    return 1.0 if kind == "first" else sum(sizes)


def summarise(parts: Sequence[RunPart], waiting: Callable[[str], None]) -> None:
    """Compute every summary that does not stand: of controls, then of the run, which reads them."""
    studied, *controls = parts
    graphs = [part.graph for part in controls]
    for part in [*controls, studied]:
        # Those first that others depend on.
        for generation in part.graph.summaries(graphs if part is studied else ()):
            tasks = [Task(cell.label, part.trajectory, (cell,)) for cell in generation]
            list(TaskRunner(part.job, None, None, waiting).run(tasks))


def save_digests(parts: Sequence[RunPart]) -> None:
    """Write the digests of weights that are known by now into the folders."""
    for part in parts:
        part.graph.digests.save()


def drop_references(controls: Sequence[RunPart]) -> None:
    """Drop what finished control runs were compared with, where folders hold their weights.

    Steps of control runs are frozen, so nothing reads it again, or else it is computed again.
    Checkpoints of the studied run are still to come, and its reference may be gone by then.
    """
    for part in controls:
        for cell in part.graph.cells():
            if isinstance(cell, ReferenceCell):
                sources = part.trajectory[int(cell.key)].sources
                if all(checkpoint.source is None for checkpoint in sources):
                    drop_numbers(part.job.folder / cell.place)


def _ahead(
    graph: Graph, prepared: Sequence[StudyCell], later: Mapping[int, Any], steps: Sequence[Task]
) -> list[Task]:
    """Return tasks without cells that read what states over several steps will, one a step.

    One process read them all while the others waited: of SmolLM2 half of all time.
    """
    states = (graph.by_name[cell.node] for cell in prepared if isinstance(cell, StateCell))
    read = [n for o in states if o.prepares_over_steps for n in own_needs(o) if shares_passes(n)]
    kept = {*read}.union(*later.values())
    # What the files have no room for would be read once more.
    if not read or len(later) * sum(graph.probe.bytes.get(need, 0) for need in kept) > LIMIT:
        return []
    options: dict[str, Any] = {"cells": (), "ahead": tuple(read), "later": later}
    return [replace(t, label=graph.label(f"reading step {t.step}"), **options) for t in steps]


def _steps(graph: Graph, cells: Sequence[StepCell]) -> list[Task]:
    steps: dict[int, list[StepCell]] = {}
    for cell in cells:
        steps.setdefault(int(cell.key), []).append(cell)
    return [
        Task(graph.label(f"step {step}"), graph.trajectory.select(steps=[step]), tuple(group), step)
        for step, group in sorted(steps.items())
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
        if cells_left := tuple(cell for cell in group if cell.place in places):
            groups[label] = cells_left
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
