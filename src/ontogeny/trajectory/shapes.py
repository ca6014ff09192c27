"""Checkpoints by the shapes of their tensors, from headers: those of one run are alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ..errors import CheckpointError
from .checkpoint import Checkpoint
from .findings import some

Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def by_shapes(checkpoints: Iterable[Checkpoint]) -> dict[Shapes, list[Checkpoint]]:
    """Return checkpoints in groups of the same shapes; the names of tensors may have a prefix.

    One that cannot be read is in none: that is said where it is read.
    """
    groups: dict[Shapes, list[Checkpoint]] = {}
    for checkpoint in checkpoints:
        try:
            with checkpoint.open() as reader:
                shapes = sorted_shapes(reader.shape(name) for name in reader.names())
        except CheckpointError:
            continue
        groups.setdefault(shapes, []).append(checkpoint)
    return groups


def are_sizes(run: Sequence[Checkpoint]) -> str:
    """Return that no two of some checkpoints have the same shapes; empty where two have."""
    if len(run) < 2 or len(by_shapes(run)) < len(run):
        return ""
    names = some([checkpoint.label for checkpoint in run])
    return (
        f"no two of {len(run)} models have the same shapes ({names}), so that they are no "
        "checkpoints of one run"
    )


def sorted_shapes(shapes: Iterable[Sequence[int]]) -> Shapes:
    """Return shapes in an order of their own.

    Examples
    --------
    >>> sorted_shapes([[3, 2], (1,)])
    ((1,), (3, 2))
    """
    return tuple(sorted(tuple(map(int, shape)) for shape in shapes))
