"""Files of several models in one folder: those of one shape are a run, and the others are named."""

from __future__ import annotations

from itertools import chain

from .. import own_code
from ..errors import ArgumentError
from ..trajectory import Trajectory
from ..trajectory.findings import some
from ..trajectory.shapes import Shapes, are_sizes, by_shapes, sorted_shapes
from ..words.formats import plural


def of_other_shapes(run: Trajectory, model: str = "") -> tuple[list[str], str]:
    """Return the names of checkpoints of other shapes than the run's, and a line on them.

    All headers are read, not those of the checkpoints alone that a preset takes. The run's shapes
    are those of the model, FILE:NAME, where one is given, else those of most checkpoints.

    Raises
    ------
    ArgumentError
        If each has shapes of its own: models of several sizes are no run.
    """
    if why := are_sizes(run.checkpoints):
        raise ArgumentError(f"{why}. Name one of them.")
    groups = by_shapes(run.checkpoints)
    if len(groups) < 2:
        return [], ""
    built = _built(model) if model else ()
    # Of as many the later ones.
    most = max(reversed(groups), key=lambda shapes: len(groups[shapes]))
    chosen = built if built in groups else most
    taken = groups.pop(chosen)
    others = [c.label for c in chain.from_iterable(groups.values())]
    whose = "the model's" if chosen == built else f"those of {taken[-1].label}"
    files = plural(len(others), "checkpoint")
    return others, f"left out: {files} of other shapes than {whose}: {some(others)}"


def _built(model: str) -> Shapes:
    built = own_code.load(model)()
    return sorted_shapes(tensor.shape for tensor in built.state_dict().values())
