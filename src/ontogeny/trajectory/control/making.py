"""A control's checkpoints from those of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, TooFewCheckpointsError, check_choice, check_whole
from ..checkpoint import Checkpoint
from .kinds import KINDS
from .weights import ControlWeights


@dataclass(frozen=True)
class Controlled:
    """What a control was made of.

    Attributes
    ----------
    kind, random_state
        How.
    of
        Where the source's checkpoints come from (`Trajectory.provenance`).
    path
        The source's folder, for its tokenizer, or None.
    """

    kind: str
    random_state: int
    of: dict[str, Any]
    path: Path | None


def control_checkpoints(
    checkpoints: Sequence[Checkpoint], kind: str, random_state: int, title: str
) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a control; nothing is read.

    Raises
    ------
    ArgumentError
        If kind or seed is unknown, there are too few checkpoints, or they are a control's.
    """
    check_choice("kind", kind, KINDS)
    random_state = check_whole("random_state", random_state, 0)
    if any(c.derived is not None for c in checkpoints):
        raise ArgumentError(
            f"{title} is a control already; make controls of the run itself, with other seeds."
        )
    fewest = 3 if kind == "shuffled" else 2
    if len(checkpoints) < fewest:
        raise TooFewCheckpointsError(
            f"a control of kind {kind!r} needs at least {fewest} checkpoints to have a motion; "
            f"{title} has {len(checkpoints)}."
        )
    made = []
    for i, checkpoint in enumerate(checkpoints):
        path, at = _path(checkpoints, kind, i)
        weights = ControlWeights(kind, random_state, path, at)
        made.append(
            Checkpoint(
                step=checkpoint.step,
                label=f"{checkpoint.label} ({weights.name})",
                path=None,
                weights=weights,
                template=checkpoint.template,
                tokens=checkpoint.tokens,
                source=checkpoint.source,
                derived=weights,
            )
        )
    return tuple(made)


def _path(
    checkpoints: Sequence[Checkpoint], kind: str, i: int
) -> tuple[tuple[Checkpoint, ...], int]:
    """Return the checkpoints that number i of a control is computed from, and its place there."""
    if i == 0:
        return (checkpoints[0],), 0
    if kind == "turned":
        return (checkpoints[0], checkpoints[i]), 1
    if kind == "walk":
        return tuple(checkpoints[: i + 1]), i
    return tuple(checkpoints), i
