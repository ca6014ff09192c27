"""Needs of weights: blocks over all steps, and the module itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Need, Source


@dataclass(frozen=True)
class Weights(Need):
    """Weight matrices over all steps, mapped over blocks: globs over names, or short names."""

    blocks: str | tuple[str, ...] = "*.weight"
    reads_inputs: ClassVar[bool] = False
    runs_model: ClassVar[bool] = False
    over: ClassVar[str] = "block"

    @property
    def patterns(self) -> tuple[str, ...]:
        """The block globs as a tuple."""
        return self.globs(self.blocks)


@dataclass(frozen=True)
class Model(Need):
    """The module itself, for exclusive use; its parameters and mode are restored afterwards."""

    reads_inputs: ClassVar[bool] = False
    runs_model: ClassVar[bool] = False
    exclusive: ClassVar[bool] = True

    def read(self, source: Source) -> Any:
        """Return the module."""
        return source.model
