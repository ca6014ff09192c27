"""The tasks of one run, in stages: those of each read what those before have computed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ...capture.blocks import WeightBlock
from ...needs import Need
from ...scratch import scratch_room
from ...trajectory import Checkpoint, Trajectory
from ...trajectory.weights.files import MemoryWeights
from ..cells import ahead
from ..cells.ahead import shares_passes
from ..cells.block_cells import BlockCell
from ..cells.graph import LayerCell, StateCell, StepCell, StudyCell
from ..cells.models import own_needs
from ..planning.build import Graph
from ..planning.cost import steps_of_blocks
from ..planning.parts import RunPart
from .disk import Revisions
from .run import Task

_BLOCKS_PER_TASK = 8
_THERE = 0.05  # what a step costs that the studied run has read, beside another


class Stages:
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
        self._is_kept = is_kept
        self.problems: list[str] = []
        self.blocked = Counter[tuple[str, str]]()
        entries = part.plan.entries
        to_do = [entry.cell for entry in entries if entry.to_do]
        prepared = [entry.cell for entry in part.plan.prepared if entry.to_do]
        self.bytes = 0
        self.of_steps = self._of_steps(to_do, prepared, workers, by_step)
        self.blocks = _groups(
            [e.cell for e in entries if isinstance(e.cell, BlockCell)], to_do
        )
        bare = _only(part.trajectory, ())
        self.layers = [
            Task(c.label, bare, (c,)) for c in to_do if isinstance(c, LayerCell)
        ]

    def _of_steps(
        self,
        to_do: Sequence[StudyCell],
        prepared: Sequence[StudyCell],
        workers: int,
        by_step: bool,
    ) -> list[tuple[str, list[Task]]]:
        """Return the stages that read whole checkpoints: what is prepared, then each step.

        Where a state is fitted over several steps, all processes read these ahead of it, if the
        files have room for that; what they have no room for would be read once more.
        """
        graph = self.part.graph
        cells = [cell for cell in to_do if isinstance(cell, StepCell)]
        over_steps = [cell for cell in prepared if _is_of_steps(cell, graph)]
        places = {cell.place for cell in over_steps}
        late = [cell for cell in cells if not places.isdisjoint(cell.reads)]
        read = _read_ahead(graph, over_steps)
        if workers:
            self.bytes = _bytes(graph, read, late)
        if not (by_step and 0 < self.bytes <= min(ahead.LIMIT, scratch_room() // 4)):
            over_steps = []
            late = cells
        step = self.part.job.settings.reference_step
        stays = () if self.part.control else self._begun
        whole: dict[int, tuple[Need, ...]] = {}  # where controls begin, they take it
        later: dict[int, tuple[Need, ...]] = {}
        if workers:
            needs_of = _needs(graph, cells)
            whole = {s: needs_of[s] for s in needs_of if s in (step, *stays)}
            later = _needs(graph, late) | whole
        steps = [
            replace(t, stays=self._is_kept or t.step in stays, later=whole)
            for t in _steps(graph, late)
        ]
        reading = _reading(graph, cells, places, read, later) if over_steps else []
        # Of several processes in a folder each would read it for the one that fits the states.
        reading = [task for task in reading if task.cells or workers > 1]
        # References and states are one task, as they read the reference step together; but for
        # states over several steps, for which all processes read.
        first = [cell for cell in prepared if cell not in over_steps]
        return [
            ("first", _at_reference(graph, "references", first, step, later)),
            ("ahead", reading),
            ("first", _at_reference(graph, "states", over_steps, step, later)),
            ("steps", steps),
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
