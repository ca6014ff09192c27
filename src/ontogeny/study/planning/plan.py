"""What a run will do: which cells are done, which are not and why, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

from ...errors import ArgumentError
from ...machine import size_text
from ...markup import html_block, html_table
from ...scratch import scratch_room
from ...store import DROPPED
from ...trajectory import Trajectory
from ..cells.cache import EXTENDED, DigestCache
from ..cells.environment import Environment, differences
from ..cells.graph import StepCell, StudyCell, header_of
from .changes import counted_changes
from .cost import Costs, together, too_large, too_large_for


@dataclass(frozen=True)
class Entry:
    """One cell: whether it stands, and if not, why.

    Attributes
    ----------
    outcome
        ``"done"``, ``"dropped"`` (it stands, and its numbers are not needed), ``"new"``,
        ``"stale"``, ``"extended"`` (of a weight matrix only new checkpoints are to be read) or
        ``"retry"`` (it was missing or had failed, or its numbers are needed).
    run
        Name of the control run that it is of; empty for the run that is studied.
    environment
        Where it was computed, if it stands.
    """

    cell: StudyCell
    outcome: str
    why: tuple[str, ...] = ()
    run: str = ""
    environment: Environment = field(default_factory=dict)

    @property
    def node(self) -> str:
        """Name of its observable."""
        return self.cell.node

    @property
    def key(self) -> int | str:
        """Its step, block or layer."""
        return self.cell.key

    @property
    def to_do(self) -> bool:
        """Whether it will be computed."""
        return self.outcome not in ("done", DROPPED)


@dataclass(repr=False)
class Plan(Costs):
    """Everything that a run reads, computes and stores; ``print`` it.

    Attributes
    ----------
    entries
        The cells of observables.
    prepared
        References and states, which are computed before them.
    device
        Where the models run.
    downloads
        Checkpoints that are still to be fetched.
    download_bytes
        Bytes of their weights.
    refused
        Which observables cannot be computed and why: a run refuses to begin. Empty if none.
    """

    entries: list[Entry] = field(default_factory=list)
    prepared: list[Entry] = field(default_factory=list)
    steps: tuple[int, ...] = ()
    device: str = "cpu"
    downloads: int = 0
    download_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    refused: str = ""

    @property
    def done(self) -> int:
        """Cells that stand."""
        return sum(not e.to_do for e in self.entries)

    @property
    def to_do(self) -> int:
        """Cells that will be computed."""
        return sum(e.to_do for e in self.entries)

    @property
    def checkpoints(self) -> int:
        """Checkpoints that will be read for cells of their own."""
        to_do = (e for e in self.entries if e.to_do and isinstance(e.cell, StepCell))
        return len({(e.run, e.key) for e in to_do})

    def certain_bytes(self, workers: int = 1) -> int:
        """Return what one worker certainly holds at once: the weights and the activations.

        Activations that the disk has room for lie in files where memory is short.
        """
        in_files = (
            self.device == "cpu" and self.activation_bytes * workers <= scratch_room()
        )
        return self.model_bytes + (
            self.fitted_bytes if in_files else self.activation_bytes
        )

    def memory_warning(self, workers: int = 1) -> str | None:
        """Return why so many workers of this machine may not have enough memory, or None.

        Raises
        ------
        ArgumentError
            If they certainly have not.
        """
        if problem := too_large(self.certain_bytes(workers), workers):
            raise ArgumentError(problem)
        on_device = too_large_for(self.device, self.device_bytes, workers)
        return too_large(self.memory_bytes, workers, about=True) or on_device

    def changes(self) -> list[str]:
        """Return what made cells stale, one line for each difference with how many it concerns."""
        every = [*self.prepared, *self.entries]
        stale = [e for e in every if e.outcome in ("stale", EXTENDED)]
        return counted_changes(((e.why, e.cell.components) for e in stale), "cell")

    def elsewhere(self, here: Environment) -> list[str]:
        """Return which cells that stand were computed in another environment than `here`."""
        entries = (e for e in [*self.prepared, *self.entries] if not e.to_do)
        return differences(((e.node, e.environment) for e in entries), here)

    def __str__(self) -> str:
        counted = [f"  {name}: {outcomes}" for name, outcomes in self._counted()]
        return "\n".join([self._reach, *counted, *self._costs(), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        paragraphs = [*self._costs(), *self.notes, *filter(None, [self.refused])]
        lines = "".join(f"<div>{escape(line)}</div>" for line in paragraphs)
        return html_block(
            "Plan", self._reach, html_table(("", "cells"), self._counted()), lines
        )

    @property
    def _reach(self) -> str:
        return f"{len(self.steps)} steps, {self.steps[0]} to {self.steps[-1]}"

    def _counted(self) -> list[tuple[str, str]]:
        """Return how many cells of each observable and control run are done and to do."""
        entries = [e for e in self.entries if not e.run]
        nodes = dict.fromkeys(e.node for e in entries)
        lines = [
            (node, _outcomes(e for e in entries if e.node == node)) for node in nodes
        ]
        for run in dict.fromkeys(e.run for e in self.entries if e.run):
            of_run = [e for e in self.entries if e.run == run]
            steps = len({e.key for e in of_run})
            lines.append((f"control run {run}, {steps} steps", _outcomes(of_run)))
        return lines

    def _costs(self) -> list[str]:
        """Return what is computed, read and held, and what has changed."""
        passes = f"{self.forwards} passes over the inputs in {self.batches} batches"
        lines = [
            f"cells: {self.done} done, {self.to_do} to do",
            f"to read: {size_text(self.weight_bytes)} of weights, {passes}",
            f"to hold: {size_text(self.activation_bytes)} of activations at once",
            f"memory of one worker: about {size_text(self.memory_bytes)} beside the libraries"
            + (
                f", {size_text(self.shared_bytes)} of it shared rotations"
                if bool(self.shared_bytes)
                else ""
            ),
        ]
        if self.device_bytes:
            lines.append(
                f"of it on {self.device}: about {size_text(self.device_bytes)}"
            )
        if self.reference_bytes:
            size = size_text(self.reference_bytes - self.dropped_bytes)
            more = (
                f" ({size_text(self.reference_bytes)} while it runs)"
                if bool(self.dropped_bytes)
                else ""
            )
            lines.append(f"to store: {size} of references{more}, and the cells")
        if self.downloads:
            size = size_text(self.download_bytes)
            lines.append(f"to download: {self.downloads} checkpoints, {size}")
        if self.retained_bytes:
            size = size_text(self.retained_bytes)
            lines.append(f"to keep in the folder if Hub revisions are bounded: {size}")
        return lines + [f"changed: {line}" for line in self.changes()]


def sum_of_plans(plans: Sequence[Plan]) -> Plan:
    """Return the plan of the run that is studied, which comes first, with its control runs."""
    # Steps and downloads are those of the studied run: controls read the same checkpoints.
    costs = vars(together(plans))
    total = replace(plans[0], entries=[], prepared=[], notes=[], **costs)
    for plan in plans:
        total.entries += plan.entries
        total.prepared += plan.prepared
        total.notes += plan.notes
    return total


def _outcomes(entries: Iterable[Entry]) -> str:
    counts = Counter(entry.outcome for entry in entries)
    return ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))


def make_plan(
    cells: Sequence[StudyCell],
    folder: Path | None,
    trajectory: Trajectory,
    digests: DigestCache,
    run: str = "",
    needed: Collection[Path] = (),
) -> Plan:
    """Compare what a folder holds with the cells of a study, which come in their order.

    A cell that reads one that is still to be computed is to be computed as well; whether that
    changes anything is found out when it is its turn. So it is of `needed` references of which the
    numbers were dropped: computed elsewhere they may come out otherwise, for all that read them.
    """
    plan = Plan(steps=tuple(int(s) for s in trajectory.steps))
    absent = [
        c.source for c in trajectory if c.source is not None and not c.is_downloaded
    ]
    plan.downloads = len(absent)
    plan.download_bytes = sum(source.size() for source in absent)
    outcomes: dict[Path, str] = {}
    header = None if folder is None else header_of(folder)
    for cell in cells:
        # Where what it reads is to be computed anew, its checksum is not known yet, and the old one
        # would tell that the cell stands.
        before = {outcomes[place] for place in cell.reads}
        header_or_none = None if before & {"new", "stale"} else header
        outcome, why, where = cell.check(
            folder, trajectory, digests.whole, header_or_none
        )
        if cell.place in needed:
            outcome = "retry"
        if outcome == "done" and "retry" in before:
            outcome = "retry"
            why = ("what it reads had failed or was dropped",)
        outcomes[cell.place] = outcome
        (plan.entries if cell.observed else plan.prepared).append(
            Entry(cell, outcome, why, run, dict(where))
        )
    read = set().union(*(entry.cell.reads for entry in plan.entries if entry.to_do))
    lost = {place for place in read if outcomes[place] == DROPPED}
    return (
        make_plan(cells, folder, trajectory, digests, run, {*needed, *lost})
        if lost
        else plan
    )
