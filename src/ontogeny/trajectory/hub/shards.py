"""A revision in shards, of which each is fetched when a tensor in it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from ...errors import CheckpointError
from ..weights.files import Reader, WeightFiles

Fetch: TypeAlias = Callable[[str], Path | None]
"""Brings a file of a revision to this machine; None if the revision has none of that name."""


class ShardsReader:
    """Reads the tensors of a Hub revision; the index says which shard holds each.

    Parameters
    ----------
    fetch
        Brings a shard to this machine.
    shards
        ``{tensor: name of its shard}``, by the index.
    opened
        Closes the shards in the end.
    """

    def __init__(self, fetch: Fetch, shards: Mapping[str, str], opened: ExitStack) -> None:
        self._fetch, self._shards, self._opened = fetch, shards, opened
        self._readers: dict[str, Reader] = {}

    def names(self) -> list[str]:
        """Return the stored tensor names, sorted."""
        return sorted(self._shards)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name`."""
        return self._reader(name).shape(name)

    def dtype(self, name: str) -> torch.dtype:
        """Return the stored dtype of tensor `name`."""
        return self._reader(name).dtype(name)

    def get(self, name: str) -> Tensor:
        """Return tensor `name`, memory-mapped."""
        return self._reader(name).get(name)

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``."""
        return self._reader(name).rows(name, start, stop)

    def _reader(self, name: str) -> Reader:
        """Return the reader of the shard that holds a tensor."""
        if name not in self._shards:
            raise CheckpointError(
                f"the checkpoint has no tensor {name!r}; it has {len(self._shards)} others."
            )
        shard = self._shards[name]
        if shard not in self._readers:
            path = self._fetch(shard)
            if path is None:
                raise CheckpointError(
                    f"the checkpoint lacks the shard {shard}, which its index names."
                )
            self._readers[shard] = self._opened.enter_context(WeightFiles((path,)).open())
        return self._readers[shard]
