"""Needs of no forward pass: inputs, another step, what is already measured, and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import Need, Source


@dataclass(frozen=True)
class InputSet(Need):
    """An input set itself, as it is read: ids, mask, texts and labels. No forward pass.

    ``on`` is its name; ``None`` means the study's first.
    """

    on: str | None = None
    runs_model = False
    reads_model = False

    def read(self, source: Source) -> Any:
        """Return the inputs, padded as they are read."""
        return source.inputs

    def tensors(self, source: Source) -> set[str]:
        """Return no tensors: the texts are the same at every checkpoint."""
        return set()


@dataclass(frozen=True)
class Reference(Need):
    """What `need` gives at the study's reference step, memory-mapped."""

    need: Need

    @property
    def at_step(self) -> Need:
        """The need that is read at the reference step."""
        return self.need

    def units(self, inputs: Any) -> np.ndarray:
        """Return the units of what is read at the reference step."""
        return self.need.units(inputs)


@dataclass(frozen=True)
class Series(Need):
    """What another observable of the study found at all steps, mapped over its layers.

    Parameters
    ----------
    node
        Name of the other observable.
    variables
        Names of its variables.
    """

    node: str
    variables: tuple[str, ...]
    reads_inputs = False
    runs_model = False
    over = "layer"


@dataclass(frozen=True)
class Weights(Need):
    """Weight matrices over all steps, mapped over blocks: globs over names, or short names."""

    blocks: str | tuple[str, ...] = "*.weight"
    reads_inputs = False
    runs_model = False
    over = "block"

    @property
    def patterns(self) -> tuple[str, ...]:
        """The block globs as a tuple."""
        return self.globs(self.blocks)


@dataclass(frozen=True)
class Model(Need):
    """The module itself, for exclusive use; its parameters and mode are restored afterwards."""

    reads_inputs = False
    runs_model = False
    exclusive = True

    def read(self, source: Source) -> Any:
        """Return the module."""
        return source.model
