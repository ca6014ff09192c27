"""A revision in shards, of which each is fetched when a tensor in it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from ...errors import CheckpointError
from ..weights.files import Reader, ShardsReader, WeightFiles

# Brings a file of a revision to this machine; None if the revision has none of that name.
Fetch: TypeAlias = Callable[[str], Path | None]


class FetchedReader(ShardsReader):
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

    def __init__(
        self, fetch: Fetch, shards: Mapping[str, str], opened: ExitStack
    ) -> None:
        super().__init__(shards)
        self._fetch = fetch
        self._opened = opened
        self._readers: dict[str, Reader] = {}

    def _part(self, name: str) -> Reader:
        """Return the reader of the shard that holds a tensor."""
        shard = super()._part(name)
        if shard not in self._readers:
            path = self._fetch(shard)
            if path is None:
                raise CheckpointError(
                    f"the checkpoint lacks the shard {shard}, which its index names."
                )
            self._readers[shard] = self._opened.enter_context(
                WeightFiles((path,)).open()
            )
        return self._readers[shard]
