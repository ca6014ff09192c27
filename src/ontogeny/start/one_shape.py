"""Files of several models in one folder: those of one shape are a run, and the others are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from .. import own_code
from ..errors import CheckpointError
from ..trajectory import Checkpoint, Trajectory
from ..trajectory.findings import some
from ..words.formats import plural

_Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def of_other_shapes(run: Trajectory, model: str = "") -> tuple[list[str], str]:
    """Return the names of checkpoints of other shapes than the run's, and a line on them.

    All headers are read, not those of the checkpoints alone that a preset takes. The run's shapes
    are those of the model, FILE:NAME, where one is given, else those of most checkpoints. Nothing is
    left out where each has shapes of its own.
    """
    groups: dict[_Shapes, list[Checkpoint]] = {}
    for checkpoint in run.checkpoints:
        try:
            groups.setdefault(_shapes(checkpoint), []).append(checkpoint)
        except CheckpointError:  # said where it is read
            continue
    if not 1 < len(groups) < len(run.checkpoints):
        return [], ""
    built = _built(model) if model else ()
    # Of as many the later ones.
    most = max(reversed(groups), key=lambda shapes: len(groups[shapes]))
    chosen = built if built in groups else most
    others = [c.label for s, group in groups.items() if s != chosen for c in group]
    whose = "the model's" if chosen == built else f"those of {groups[chosen][-1].label}"
    files = plural(len(others), "checkpoint")
    return others, f"left out: {files} of other shapes than {whose}: {some(others)}"


def _shapes(checkpoint: Checkpoint) -> _Shapes:
    """Return the shapes of the tensors; their names may have a prefix."""
    with checkpoint.open() as reader:
        return _sorted(reader.shape(name) for name in reader.names())


def _built(model: str) -> _Shapes:
    built = own_code.load(model)()
    return _sorted(tensor.shape for tensor in built.state_dict().values())


def _sorted(shapes: Iterable[Sequence[int]]) -> _Shapes:
    return tuple(sorted(tuple(map(int, shape)) for shape in shapes))
