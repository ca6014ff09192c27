"""Checkpoints by the shapes of their tensors, from headers: those of one run are alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
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
        with suppress(CheckpointError):
            groups.setdefault(_shapes(checkpoint), []).append(checkpoint)
    return groups


def are_sizes(run: Sequence[Checkpoint]) -> str:
    """Return that no two of some checkpoints have the same shapes; empty where two have.

    It is empty where one cannot be read, too. No more are opened than it takes.
    """
    seen: set[Shapes] = set()
    for checkpoint in run:
        try:
            shapes = _shapes(checkpoint)
        except CheckpointError:
            return ""
        if shapes in seen:
            return ""
        seen.add(shapes)
    if len(seen) < 2:
        return ""
    names = some([checkpoint.label for checkpoint in run])
    return (
        f"no two of {len(run)} models have the same shapes ({names}), so that they are no "
        "checkpoints of one run"
    )


def _shapes(checkpoint: Checkpoint) -> Shapes:
    with checkpoint.open() as reader:
        return sorted_shapes(reader.shape(name) for name in reader.names())


def sorted_shapes(shapes: Iterable[Sequence[int]]) -> Shapes:
    """Return shapes in an order of their own.

    Examples
    --------
    >>> sorted_shapes([[3, 2], (1,)])
    ((1,), (3, 2))
    """
    return tuple(sorted(tuple(map(int, shape)) for shape in shapes))
