"""Reader over the tensors of a base with an adapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..weights.files import Reader
from .merging import Merged
from .mlx import MlxMerged


@dataclass(frozen=True)
class Layout:
    """Which tensors there are, the same for all adapters of one shape on one base.

    Attributes
    ----------
    names
        Of all tensors, sorted: those of the base's files, and of the module where these have none.
    changed
        ``{name: (name in the module, shape, dtype)}`` of those that are not the base's.
    joined
        Those of them that lie in several tensors of the base's files, as experts do.
    """

    names: tuple[str, ...]
    changed: dict[str, tuple[str, tuple[int, ...], torch.dtype]]
    joined: frozenset[str]


@dataclass(eq=False)
class AdaptedReader:
    """Reader over a base and what peft merges into it; the last merged tensor is kept.

    Parameters
    ----------
    base
        The opened base.
    layout
        Of the adapter on it.
    merged
        Gives the adapter on the base, when the first changed tensor is read.
    """

    base: Reader
    layout: Layout
    merged: Callable[[], Merged | MlxMerged]

    def __post_init__(self) -> None:
        self._last: tuple[str, Tensor] | None = None

    @property
    def changed(self) -> frozenset[str]:
        """Return the names of the tensors that are not the base's."""
        return frozenset(self.layout.changed)

    @property
    def joined(self) -> frozenset[str]:
        """Return the names of changed tensors that the base's files hold in several."""
        return self.layout.joined

    def before(self, name: str) -> Tensor:
        """Return a changed tensor as the base has it."""
        return self.merged().before(self.layout.changed[name][0])

    def names(self) -> list[str]:
        """Return the names of all tensors, sorted."""
        return list(self.layout.names)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name`."""
        changed = self.layout.changed.get(name)
        return self.base.shape(name) if changed is None else changed[1]

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype of tensor `name`."""
        changed = self.layout.changed.get(name)
        return self.base.dtype(name) if changed is None else changed[2]

    def get(self, name: str) -> Tensor:
        """Return tensor `name`."""
        changed = self.layout.changed.get(name)
        if changed is None:
            return self.base.get(name)
        if self._last is None or self._last[0] != name:
            self._last = None  # so that two tensors are never held at once
            self._last = (name, self.merged().tensor(changed[0]))
        return self._last[1]

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``."""
        if name not in self.layout.changed:
            return self.base.rows(name, start, stop)
        return self.get(name)[start:stop]
