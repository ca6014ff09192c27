"""From a plan to finished cells: tasks in their order, each stage planned anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from ..capture import WeightBlock
from ..trajectory import Checkpoint, Trajectory
from ..trajectory.weights import MemoryWeights
from .disk import Revisions
from .mapping import map_tasks
from .plan import Entry, Plan
from .planner import Planner
from .progress import Progress
from .tasks import BlockTask, Job, SeriesTask, StateTask, StepTask, Task

__all__ = ["compute"]

_BLOCKS_PER_TASK = 8


def compute(
    job: Job,
    planner: Planner,
    plan: Plan,
    executor: Executor | None,
    progress: Progress,
    max_revisions: int | None,
) -> list[str]:
    """Compute every cell that is to do, and return what went wrong, one line each."""
    problems: list[str] = []
    blocked: Counter[tuple[str, str]] = Counter()
    states, steps = _state_tasks(planner, plan), _step_tasks(planner, plan)
    blocks, series = _blocks(planner, plan), _series_tasks(planner, plan)
    groups = sum(any(e.to_do for e in group) for _, group in _groups(blocks))
    progress.start(len(states) + len(steps) + groups + len(series), plan.to_do)
    order = [job.settings.reference_step] * len(states) + [task.step for task in steps]
    to_read = [str(e.key) for e in blocks if e.to_do]
    revisions = Revisions(planner.trajectory, max_revisions, to_read, job.folder / "retained")

    def stage(tasks: Sequence[Task]) -> None:
        for done in map_tasks(job, tasks, executor, revisions, progress.note):
            progress.advance(done.label, done.done + done.found, done.seconds)
            problems.extend(done.problems)
            blocked.update(done.blocked)

    # Fingerprints hold the checksums of what came before, so each stage is planned anew.
    with revisions.open(order):
        stage(states)
        if states:
            steps = _step_tasks(planner, planner.plan())
        stage(steps)
        if to_read:
            stage(_block_tasks(planner, blocks, revisions.trajectory_of_blocks()))
    if series or any(o.source for o in planner.observables):
        stage(_series_tasks(planner, planner.plan()))
    problems += [f"{node}: failed in {n} cells: {why}" for (node, why), n in blocked.items()]
    return problems


def _state_tasks(planner: Planner, plan: Plan) -> list[StateTask]:
    references = {n: e.fingerprint for n, e in plan.references.items() if e.to_do}
    states = {e.node: e.fingerprint for e in plan.states if e.to_do}
    return [StateTask(planner.trajectory, references, states)] if references or states else []


def _step_tasks(planner: Planner, plan: Plan) -> list[StepTask]:
    steps: dict[int, dict[str, Any]] = {}
    for entry in plan.entries:
        if entry.to_do and isinstance(entry.key, int):
            steps.setdefault(entry.key, {})[entry.node] = entry.fingerprint
    return [
        StepTask(planner.trajectory.select(steps=[step]), step, cells)
        for step, cells in sorted(steps.items())
    ]


def _blocks(planner: Planner, plan: Plan) -> list[Entry]:
    over_blocks = {o.name for o in planner.observables if o.over_blocks}
    return [e for e in plan.entries if e.node in over_blocks]


def _groups(blocks: Sequence[Entry]) -> list[tuple[str, Sequence[Entry]]]:
    """Return blocks in groups with a name, the same ones whatever of them is done already.

    So processes that begin at different times mean the same by a name.
    """
    starts = range(0, len(blocks), _BLOCKS_PER_TASK)
    groups = [blocks[start : start + _BLOCKS_PER_TASK] for start in starts]
    return [
        (f"weights {start + 1}-{start + len(group)} of {len(blocks)}", group)
        for start, group in zip(starts, groups, strict=True)
    ]


def _block_tasks(
    planner: Planner, blocks: Sequence[Entry], trajectory: Trajectory
) -> list[BlockTask]:
    tasks = []
    for label, group in _groups(blocks):
        cells = {(e.node, str(e.key)): e.fingerprint for e in group if e.to_do}
        if cells:
            known = {block: planner.probe.weight_blocks[block] for _, block in cells}
            tasks.append(BlockTask(_only(trajectory, known.values()), known, cells, label))
    return tasks


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


def _series_tasks(planner: Planner, plan: Plan) -> list[SeriesTask]:
    of_series = {o.name for o in planner.observables if o.source is not None}
    return [
        SeriesTask(plan.steps, e.node, str(e.key), e.fingerprint)
        for e in plan.entries
        if e.to_do and e.node in of_series
    ]
