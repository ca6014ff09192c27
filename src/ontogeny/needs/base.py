"""What every need has: a value that says itself how it is read."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..errors import ArgumentError

MASK_FRACTION = 0.15
GRANULARITIES = ("all", "later", "mean", "last", "cls", "masked")
# A model with the input set of a need: an `ontogeny.capture.ModelSource`.
Source: TypeAlias = Any


class Need:
    """What is read of one checkpoint: a frozen dataclass, so that equal needs are read once.

    A subclass gives `read`, or `pass_key` and `collector` if it shares forward passes with other
    needs. The other methods have defaults that are safe: all weights count as read, and nothing
    is priced.

    Attributes
    ----------
    on
        Name of the input set that is read; None means the study's first.
    reads_inputs
        Whether its value depends on the input set.
    runs_model
        Whether the model is run on the input set, so that padding must not matter.
    reads_model
        Whether it is read of the model at all: texts are the same at every checkpoint.
    exclusive
        Whether its value is the module itself: it is put back after each observable.
    over
        What observables that need it are mapped over: ``"step"``, ``"block"`` or ``"layer"``.
    """

    on: str | None = None
    reads_inputs: ClassVar[bool] = True
    runs_model: ClassVar[bool] = True
    reads_model: ClassVar[bool] = True
    exclusive: ClassVar[bool] = False
    over: ClassVar[str] = "step"

    def __post_init__(self) -> None:
        """Make lists tuples: a need is the key of what is read, and study files give lists."""
        for name, value in vars(self).items():
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))

    @property
    def at_step(self) -> Need:
        """The need that is read of a checkpoint: this one, unless it is a `Reference`."""
        return self

    @staticmethod
    def globs(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
        """Return one glob or several as a tuple."""
        return (patterns,) if isinstance(patterns, str) else patterns

    def check(self, source: Source) -> None:
        """Refuse a model or inputs that it cannot read; called once before a study begins."""

    def labels(self, source: Source) -> tuple[str, ...]:
        """Return the labels of the layers that its value holds; none if it has no layers."""
        return ()

    def pass_key(self, source: Source) -> Hashable | None:
        """Return what needs must have in common to share forward passes; None to share none."""
        return None

    def collector(self, source: Source) -> Any:
        """Return the `ontogeny.capture.collect.Collector` that is fed by the shared passes."""
        raise ArgumentError(f"{type(self).__name__} has a pass key and no collector.")

    def read(self, source: Source) -> Any:
        """Return the value of a need that shares no forward passes.

        Raises
        ------
        ArgumentError
            If it is not read of one checkpoint.
        """
        raise ArgumentError(f"{type(self).__name__} is not read of one checkpoint.")

    def tensors(self, source: Source) -> set[str] | None:
        """Return the names of the stored tensors that its value depends on; None means all."""
        return None

    def size(self, source: Source) -> int:
        """Return the bytes that its value holds in memory."""
        return 0

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit that each row of the value belongs to, see `Inputs.groups`.

        A unit is a text, or all texts that repeat or share a document; it has the number of its
        first text.

        Raises
        ------
        ArgumentError
            If the value has no rows that belong to texts.
        """
        raise ArgumentError(
            f"the rows of {type(self).__name__} do not belong to texts."
        )


class PassNeed(Need):
    """A need whose value depends on all modules that are called in a pass."""

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of all modules that are called."""
        return source.tensors_read()
