"""A run that was found and not tried yet: what there is of it, said before libraries are loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..errors import CheckpointError
from ..machine import size_text
from ..trajectory import Checkpoint, Trajectory
from .one_shape import of_other_shapes
from .source import check_source, is_repository, open_source
from .times import hours_of
from .wishes import Wishes


@dataclass(frozen=True)
class Opened:
    """A run's checkpoints, without those of other shapes unless steps were named.

    Attributes
    ----------
    wishes
        What was asked for, with the files of other shapes left out.
    others
        A line on these; empty where there are none.
    """

    wishes: Wishes
    run: Trajectory
    others: str = ""

    @classmethod
    def of(cls, wishes: Wishes) -> Opened:
        """Return the run that was asked for.

        Raises
        ------
        ArgumentError, CheckpointError
            If there is none; the message says what there is.
        """
        check_source(wishes.source)
        _check_asked(wishes)
        run = open_source(wishes.source, choice=wishes.choice)
        if is_repository(wishes.source) or run.has_base or "," in wishes.steps:
            return cls(wishes, run)
        others, line = of_other_shapes(run, wishes.model)
        if others:
            wishes = replace(wishes, exclude=[*wishes.exclude, *others])
            run = open_source(wishes.source, choice=wishes.choice)
        return cls(wishes, run, line)

    @property
    def line(self) -> str:
        """How many checkpoints there are, and how large one is, by its header."""
        found = self.run.lines()[0]
        size = _size_of(self.run.checkpoints[-1])
        return f"{found}; {size} in the last" if size else found


def _check_asked(wishes: Wishes) -> None:
    """Refuse a time that is none and a device that is not here, before a model is looked at."""
    if wishes.budget:
        hours_of(wishes.budget)
    for device in wishes.values_set("options.device"):
        from ..study.folder.settings import resolve_device  # which loads PyTorch

        resolve_device(device)


def _size_of(checkpoint: Checkpoint) -> str:
    """Return the numbers and bytes of a checkpoint that is here; empty where they are not known."""
    if not checkpoint.is_downloaded:
        return ""
    try:
        with checkpoint.open() as reader:
            counts = {name: math.prod(reader.shape(name)) for name in reader.names()}
            stored = sum(reader.dtype(n).itemsize * c for n, c in counts.items())
    except CheckpointError:  # said where it is read
        return ""
    return f"{sum(counts.values()):,} numbers, {size_text(stored)},"
