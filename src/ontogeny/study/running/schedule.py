"""From a plan to finished cells: which tasks there are, and in which order."""

from __future__ import annotations

import itertools
import math
from collections import Counter, deque
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ...capture.blocks import WeightBlock
from ...needs import Need
from ...scratch import scratch_room
from ...store import drop_numbers
from ...trajectory import Checkpoint, Trajectory
from ...trajectory.weights import MemoryWeights
from ..cells import ahead
from ..cells.ahead import forget, shares_passes, sweep_killed
from ..cells.block_cells import BlockCell
from ..cells.graph import (
    LayerCell,
    ReferenceCell,
    StateCell,
    StepCell,
    StudyCell,
    SummaryCell,
)
from ..cells.models import own_needs
from ..planning.build import Graph
from ..planning.cost import steps_of_blocks
from ..planning.parts import RunPart
from ..progress import Pace, Progress
from .disk import Revisions
from .executors import Submitting, workers_here
from .handed import Exchange
from .mapping import TaskRunner, Work
from .run import Task

_BLOCKS_PER_TASK = 8
_THERE = 0.05  # what a step costs that the studied run has read, beside another


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
    every = [_Stages(part, turn, *options) for turn, part in enumerate(parts)]
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
        every: Sequence[_Stages],
        workers: float,
        revisions: Revisions | None = None,
    ) -> None:
        self._works: list[Work] = []
        self._of: dict[
            Work, tuple[_Stages, str]
        ] = {}  # of each task that is not finished
        self._coming = deque(every)
        self._workers = workers
        self._begun = dict[_Stages, Iterator[tuple[str, Sequence[Task]]]]()
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

    def _go_on(self, stages: _Stages) -> None:
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


class _Stages:
    """The tasks of one run: those of each stage read what those before have computed.

    Attributes
    ----------
    turn
        Its place among the runs.
    bytes
        What it reads ahead into files.
    problems
        What went wrong, one line each.
    blocked
        How many cells of a node failed for what failed before them, by node and reason.
    """

    def __init__(
        self,
        part: RunPart,
        turn: int,
        workers: int,
        by_step: bool,
        begun: Collection[int],
        is_kept: bool = False,
    ) -> None:
        self.part = part
        self.turn = turn
        self._begun = begun
        self.problems: list[str] = []
        self.blocked = Counter[tuple[str, str]]()
        plan = part.plan
        trajectory = part.trajectory
        graph = part.graph
        to_do = [e.cell for e in plan.entries if e.to_do]
        prepared = [e.cell for e in plan.prepared if e.to_do]
        cells = [cell for cell in to_do if isinstance(cell, StepCell)]
        over_steps = [cell for cell in prepared if _is_of_steps(cell, graph)]
        places = {cell.place for cell in over_steps}
        late = [cell for cell in cells if not places.isdisjoint(cell.reads)]
        read = _read_ahead(graph, over_steps)
        self.bytes = _bytes(graph, read, late) if workers else 0
        # What the files have no room for would be read once more.
        if not (by_step and 0 < self.bytes <= min(ahead.LIMIT, scratch_room() // 4)):
            over_steps = []
            late = cells
        step = part.job.settings.reference_step
        stays = () if part.control else begun
        whole: dict[int, tuple[Need, ...]] = {}  # where controls begin, they take it
        later: dict[int, tuple[Need, ...]] = {}
        if workers:
            needs_of = _needs(graph, cells)
            whole = {s: needs_of[s] for s in needs_of if s in (step, *stays)}
            later = _needs(graph, late) | whole
        steps = [
            replace(t, stays=is_kept or t.step in stays, later=whole)
            for t in _steps(graph, late)
        ]
        reading = _reading(graph, cells, places, read, later) if over_steps else []
        # Of several processes in a folder each would read it for the one that fits the states.
        reading = [task for task in reading if task.cells or workers > 1]
        # References and states are one task, as they read the reference step together; but for
        # states over several steps, for which all processes read.
        first = [cell for cell in prepared if cell not in over_steps]
        self.of_steps = [
            ("first", _at_reference(graph, "references", first, step, later)),
            ("ahead", reading),
            ("first", _at_reference(graph, "states", over_steps, step, later)),
            ("steps", steps),
        ]
        self.blocks = _groups(
            [e.cell for e in plan.entries if isinstance(e.cell, BlockCell)], to_do
        )
        bare = _only(trajectory, ())
        self.layers = [
            Task(c.label, bare, (c,)) for c in to_do if isinstance(c, LayerCell)
        ]

    @property
    def sizes(self) -> Iterator[tuple[str, float]]:
        """Kind and size of every task."""
        blocks = [
            Task("", self.part.trajectory, cells) for cells in self.blocks.values()
        ]
        for kind, tasks in [
            *self.of_steps,
            ("blocks", blocks),
            ("layers", self.layers),
        ]:
            yield from ((kind, self.size(kind, task)) for task in tasks)

    def size(self, kind: str, task: Task) -> float:
        """Return how many cells a task has; one with noise floors is computed some times.

        References and states of a run are one: where a study went on with all but one state, that
        took 7 minutes, and 36 such cells of its controls made 5 hours of the rest.
        """
        sizes = (2.0 if cell.components.get("noise") else 1.0 for cell in task.cells)
        size = 1.0 if kind == "first" else sum(sizes) + (kind == "ahead")
        # A control begins with what the run has read.
        is_there = kind == "ahead" and self.part.control and task.step in self._begun
        return size * (_THERE if is_there else 1)

    def in_order(
        self, revisions: Revisions | None
    ) -> Iterator[tuple[str, Sequence[Task]]]:
        """Give the kind and the tasks of one stage after the other."""
        yield from self.of_steps
        if self.blocks:
            there = self.part.trajectory
            there = there if revisions is None else revisions.trajectory_of_blocks()
            yield "blocks", _blocks(self.blocks, there)
        yield "layers", self.layers

    def revisions(self, max_revisions: int) -> Revisions:
        """Return the Hub revisions of the run, of which so many lie on disk."""
        cells = list(chain.from_iterable(self.blocks.values()))
        tensors = [cell.block.tensor for cell in cells]
        of_steps = list(chain.from_iterable(tasks for _, tasks in self.of_steps))
        steps = steps_of_blocks(cells, self.part.folder, self.part.graph.steps)
        job = self.part.job
        trajectory = self.part.trajectory
        return Revisions(job, trajectory, of_steps, max_revisions, tensors, steps)

    def lines(self) -> Iterator[str]:
        """Give what went wrong, of what failed for what had failed before one line a reason."""
        yield from self.problems
        for (node, why), n in self.blocked.items():
            yield self.part.graph.label(f"{node}: failed in {n} cells: {why}")


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


def _is_of_steps(cell: StudyCell, graph: Graph) -> bool:
    """Return whether it is a state over several steps.

    One process read them all while the others waited: of SmolLM2 half of all time.
    """
    return isinstance(cell, StateCell) and graph.by_name[cell.node].prepares_over_steps


def _needs(graph: Graph, cells: Sequence[StepCell]) -> dict[int, tuple[Need, ...]]:
    """Return what cells need of each step."""
    needs: dict[int, tuple[Need, ...]] = {}
    for task in _steps(graph, cells):
        of_cells = (cell.needs(graph.by_name) for cell in task.cells)
        needs[int(str(task.step))] = tuple(chain.from_iterable(of_cells))
    return needs


def _bytes(graph: Graph, read: Sequence[Need], cells: Sequence[StepCell]) -> int:
    """Return what is read of every step of these cells ahead of them."""
    later = _needs(graph, cells)
    kept = {*read}.union(*later.values())
    return (
        len(later) * sum(graph.probe.bytes.get(need, 0) for need in kept) if read else 0
    )


def _steps(graph: Graph, cells: Sequence[StepCell]) -> list[Task]:
    steps: dict[int, list[StepCell]] = {}
    for cell in cells:
        steps.setdefault(int(cell.key), []).append(cell)
    run = graph.trajectory
    return [
        Task(
            graph.label(f"{run.unit} {step}"),
            run.select(steps=[step]),
            tuple(group),
            step,
        )
        for step, group in sorted(steps.items())
    ]


def _read_ahead(graph: Graph, states: Sequence[StudyCell]) -> tuple[Need, ...]:
    """Return what states over several steps need that other cells may read as well."""
    needs = itertools.chain.from_iterable(
        own_needs(graph.by_name[cell.node]) for cell in states
    )
    return tuple(need for need in needs if shares_passes(need))


def _reading(
    graph: Graph,
    cells: Sequence[StepCell],
    states: Set[Path],
    ahead: tuple[Need, ...],
    later: Mapping[int, tuple[Need, ...]],
) -> list[Task]:
    """Return tasks that read each step ahead of the states, with its cells that read none."""
    return [
        replace(
            task,
            label=graph.label(f"reading {graph.trajectory.unit} {task.step}"),
            cells=tuple(cell for cell in task.cells if states.isdisjoint(cell.reads)),
            ahead=ahead,
            later=later,
        )
        for task in _steps(graph, cells)
    ]


def _at_reference(
    graph: Graph,
    label: str,
    cells: Sequence[StudyCell],
    step: int,
    later: Mapping[int, tuple[Need, ...]],
) -> list[Task]:
    """Return the one task of cells that are prepared at the reference step, if there are any."""
    if not cells:
        return []
    run = graph.trajectory
    label = graph.label(label)
    return [Task(label, run, tuple(cells), step, any_step=True, later=later)]


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


def _blocks(
    groups: dict[str, tuple[BlockCell, ...]], trajectory: Trajectory
) -> list[Task]:
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
        tensors = {
            name: reader.get(name) for name in names.intersection(reader.names())
        }
    # A view would take the whole of its storage with it.
    return MemoryWeights(
        {
            n: t if t.untyped_storage().nbytes() == t.nbytes else t.clone()
            for n, t in tensors.items()
        }
    )
