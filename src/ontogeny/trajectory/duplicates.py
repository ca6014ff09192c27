"""A rule for checkpoints that hold the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import CheckpointError, check_choice
from .audit import duplicate_groups
from .findings import Finding, join_steps

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .trajectory import Trajectory

__all__ = ["RULES", "resolve"]

RULES = ("mark", "drop", "raise")


def resolve(
    trajectory: Trajectory, on_duplicate: str
) -> tuple[tuple[Checkpoint, ...], tuple[Finding, ...]]:
    """Return the checkpoints to keep and what to note of the others.

    Raises
    ------
    ArgumentError
        If `on_duplicate` is unknown.
    CheckpointError
        With ``"raise"``, if any checkpoints hold the same weights.
    """
    check_choice("on_duplicate", on_duplicate, RULES)
    if on_duplicate == "mark":
        return trajectory.checkpoints, ()
    trajectory.file_digests()  # all listings at once
    groups = duplicate_groups(trajectory.checkpoints)
    if groups and on_duplicate == "raise":
        listed = "; ".join(join_steps(group) for group in groups)
        raise CheckpointError(
            f"{trajectory.title} has checkpoints with the same weights: {listed}."
        )
    last = trajectory.checkpoints[-1].step
    dropped: set[int] = set()
    noted = []
    for group in groups:
        kept = last if last in group else group[0]
        others = tuple(step for step in group if step != kept)
        dropped.update(others)
        verb = "is" if len(others) == 1 else "are"
        text = (
            f"{join_steps(others)} {verb} left out: the same weights as step {kept}, byte for byte"
        )
        noted.append(Finding("duplicate-dropped", "certain", others, text))
    rest = tuple(c for c in trajectory.checkpoints if c.step not in dropped)
    return rest, tuple(noted)
