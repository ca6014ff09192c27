"""Tensors that are found, or put together, only when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from ...errors import CheckpointError
from .inert import few


@dataclass(frozen=True)
class Part:
    """A tensor: its shape and dtype, and what reads it."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[], Tensor]


class PartsReader:
    """Reader over parts by name, or over what else has a shape and a dtype.

    Examples
    --------
    >>> reader = PartsReader({"w": Part((2,), torch.float32, lambda: torch.ones(2))})
    >>> reader.names(), reader.rows("w", 0, 1)
    (['w'], tensor([1.]))
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = parts

    def names(self) -> list[str]:
        """Return the names, sorted."""
        return sorted(self._parts)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name` without reading it."""
        return tuple(self._part(name).shape)

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype of tensor `name` without reading it."""
        return cast("torch.dtype", self._part(name).dtype)

    def get(self, name: str) -> Tensor:
        """Return tensor `name`."""
        return cast("Tensor", self._part(name).read())

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``; the whole tensor is read for it."""
        return self.get(name)[start:stop]

    def _part(self, name: str) -> Any:
        if name not in self._parts:
            others = f"it has {len(self._parts)} others"
            raise CheckpointError(f"the checkpoint has no tensor {name!r}; {others}.")
        return self._parts[name]


def keyed(reader: Any, key: str, label: object) -> PartsReader:
    """Return what a reader holds under a key, the beginning of names until a dot.

    Raises
    ------
    CheckpointError
        If there is nothing; the message lists the beginnings that there are.
    """
    names = {name.removeprefix(f"{key}."): name for name in reader.names()}
    if not any(name != short for short, name in names.items()):
        raise no_key(
            label, key, sorted({n.partition(".")[0] for n in names if "." in n})
        )
    return PartsReader(
        {
            short: Part(
                reader.shape(name), reader.dtype(name), partial(reader.get, name)
            )
            for short, name in names.items()
            if short != name
        }
    )


def no_key(label: object, key: str, places: list[str]) -> CheckpointError:
    """Return the error that there are no weights under a key, with the keys that there are."""
    others = (
        f"it has them under {few(places)}" if places else "it has them under no key"
    )
    return CheckpointError(f"{label} has no weights under --key {key}; {others}.")
