"""A rule for checkpoints that hold the same weights."""

from __future__ import annotations

from ..errors import CheckpointError, check_choice
from .audit import duplicate_groups
from .checkpoint import Checkpoint
from .findings import Finding, join_steps
from .hub.repository import list_files

RULES = ("mark", "drop", "raise")


def resolve(
    checkpoints: tuple[Checkpoint, ...], on_duplicate: str
) -> tuple[tuple[Checkpoint, ...], tuple[Finding, ...]]:
    """Return the checkpoints to keep, and findings on the others.

    Raises
    ------
    ArgumentError
        If `on_duplicate` is unknown.
    CheckpointError
        With ``"raise"``, if any checkpoints hold the same weights.
    """
    check_choice("on_duplicate", on_duplicate, RULES)
    if on_duplicate == "mark":
        return checkpoints, ()
    list_files(s.source for c in checkpoints for s in c.sources if s.source is not None)
    groups = duplicate_groups(checkpoints)
    if groups and on_duplicate == "raise":
        listed = "; ".join(join_steps(group) for group in groups)
        raise CheckpointError(f"checkpoints hold the same weights: {listed}.")
    last = checkpoints[-1].step
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
    rest = tuple(c for c in checkpoints if c.step not in dropped)
    return rest, tuple(noted)
