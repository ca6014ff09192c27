"""What a run will do: which cells are done, which are not and why, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..needs import Reference

__all__ = ["Entry", "Plan"]


@dataclass(frozen=True)
class Entry:
    """One cell, state or reference: whether it stands, and if not, why."""

    node: str
    key: int | str
    fingerprint: Mapping[str, Any]
    outcome: str
    """``"done"``, ``"new"``, ``"stale"`` or ``"retry"`` (it was missing or had failed)."""
    why: tuple[str, ...] = ()

    @property
    def to_do(self) -> bool:
        """Whether it will be computed."""
        return self.outcome != "done"


@dataclass
class Plan:
    """Everything that a run reads, computes and stores; ``print`` it."""

    entries: list[Entry] = field(default_factory=list)
    states: list[Entry] = field(default_factory=list)
    references: dict[Reference, Entry] = field(default_factory=dict)
    steps: tuple[int, ...] = ()
    forwards: int = 0
    """Passes over an input set that are still to be run."""
    batches: int = 0
    """Batches of those passes together."""
    activation_bytes: int = 0
    """Largest activations held at once for one checkpoint."""
    weight_bytes: int = 0
    """Weights that will be read."""
    retained_bytes: int = 0
    """Weight blocks of all steps: what a run with bounded Hub revisions keeps in its folder."""
    notes: list[str] = field(default_factory=list)

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
        return len({e.key for e in self.entries if e.to_do and isinstance(e.key, int)})

    def changes(self) -> list[str]:
        """Return what made cells stale, one line for each difference with how many it concerns."""
        reasons = Counter(
            line for e in [*self.states, *self.entries] if e.outcome == "stale" for line in e.why
        )
        return [f"{line} ({n} cell{'s' * (n != 1)})" for line, n in reasons.most_common()]

    def __str__(self) -> str:
        nodes = dict.fromkeys(e.node for e in self.entries)
        lines = [f"{len(self.steps)} steps, {self.steps[0]} to {self.steps[-1]}"]
        for node in nodes:
            counts = Counter(e.outcome for e in self.entries if e.node == node)
            parts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
            lines.append(f"  {node}: {parts}")
        lines.append(f"cells: {self.done} done, {self.to_do} to do")
        lines.append(
            f"to read: {_bytes(self.weight_bytes)} of weights, {self.forwards} passes over the "
            f"inputs in {self.batches} batches"
        )
        lines.append(f"to hold: {_bytes(self.activation_bytes)} of activations at once")
        if self.retained_bytes:
            lines.append(
                f"to keep in the folder if Hub revisions are bounded: {_bytes(self.retained_bytes)}"
            )
        lines += [f"changed: {line}" for line in self.changes()]
        return "\n".join([*lines, *self.notes])


def _bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"
