"""Checkpoints that are computed from a base: with an adapter, and the base itself as step 0."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..weights.digests import combine, tensor_digests
from ..weights.files import Reader
from ..weights.inert import few
from ..weights.transformers_models import checked_configuration
from .reader import AdaptedReader, Plan, partner
from .settings import AdapterSettings

logger = logging.getLogger("ontogeny.trajectory")


@dataclass(frozen=True, eq=False)
class AdapterWeights:
    """A base with one adapter; tensors are base + scale B A when they are read."""

    base: Checkpoint
    settings: AdapterSettings
    label: str

    @property
    def name(self) -> str:
        """Return what they are."""
        return f"adapter {self.label}"

    @property
    def here(self) -> Checkpoint:
        """Return the base, whose configuration they have."""
        return self.base

    @property
    def sources(self) -> tuple[Checkpoint, ...]:
        """Return the base."""
        return (self.base,)

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader that computes each tensor when it is asked for.

        Raises
        ------
        CheckpointError
            If base or adapter cannot be read, or do not belong together.
        """
        family = str((self.base.configuration() or {}).get("model_type"))
        with self.base.open() as base, self.settings.files().open() as adapter:
            reader = AdaptedReader(base, adapter, self.settings, family, self.label)
            self._check_tied(reader.plan)
            yield reader

    def _check_tied(self, plan: Plan) -> None:
        """Refuse an embedding that peft adapts and whose tied head it leaves as it was."""
        table, path = self.settings.table, self.base.path
        name = plan.embedding(table.get("modules_to_save") or ())
        if name is None or path is None or table.get("ensure_weight_tying"):
            return
        if (path / "config.json").is_file() and checked_configuration(path).tie_word_embeddings:
            raise CheckpointError(
                f"{self.label} adapts {name}, which the base ties to its head; peft leaves the "
                "head as it was, and one tensor cannot be both. Untie the base, or merge it."
            )

    def on_disk(self) -> None:
        """Return None: what is computed lies in no file."""

    def digests(self, of: Callable[[Checkpoint], Mapping[str, str]]) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by the digests `of` the base and of the adapter."""
        base, adapter = dict(of(self.base)), tensor_digests(self.settings.files())
        plan = Plan(self.label, adapter, base)
        how = combine({key: str(value) for key, value in self.settings.table.items()})
        base |= {name: adapter[inner_name] for name, inner_name in plan.whole.items()}
        for name, parts in plan.parts.items():
            read = {part: adapter[inner_name] for part, inner_name in parts.items()}
            base[name] = combine({"base": base[name], "how": how, **read})
        return base

    def file_digests(self) -> dict[str, str] | None:
        """Return digests by the Hub's files and the adapter; None if the base is elsewhere."""
        files = self.base.file_digests()
        digest = combine(tensor_digests(self.settings.files())) if files is not None else ""
        return None if files is None else {**files, self.name: digest}

    def moved(self, function: Callable[[Checkpoint], Checkpoint]) -> AdapterWeights:
        """Return the same with another place of the base."""
        return replace(self, base=function(self.base))


@dataclass(frozen=True, eq=False)
class BaseWeights:
    """A base as step 0 of a run: the tensors of the run's first checkpoint, as the base has them.

    Tensors that the base lacks, or has in another shape, are those of the first checkpoint.
    """

    base: Checkpoint
    first: Checkpoint

    @property
    def name(self) -> str:
        """Return what they are."""
        return "base"

    @property
    def here(self) -> Checkpoint:
        """Return the run's first checkpoint, whose configuration they have."""
        return self.first

    @property
    def sources(self) -> tuple[Checkpoint, ...]:
        """Return base and first checkpoint."""
        return (self.base, self.first)

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader of both.

        Raises
        ------
        CheckpointError
            If one of them cannot be read.
        """
        with self.base.open() as base, self.first.open() as first:
            reader = _BaseReader(base, first)
            if reader.new:
                _say_new(self.base.label, self.first.label, few(sorted(reader.new)))
            yield reader

    def on_disk(self) -> None:
        """Return None: what is put together lies in no file."""

    def digests(self, of: Callable[[Checkpoint], Mapping[str, str]]) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by those of both."""
        base, first = of(self.base), of(self.first)
        pairs = {name: partner(name, base) for name in first}
        # The dtype is the run's, and the shapes decide which is read.
        return {
            name: combine({"base": base[inner_name] if inner_name else "", "first": first[name]})
            for name, inner_name in pairs.items()
        }

    def file_digests(self) -> dict[str, str] | None:
        """Return digests by the Hub's files of the base; None if it is elsewhere."""
        files = self.base.file_digests()
        return None if files is None else {**files, "first": self.first.fingerprint}

    def moved(self, function: Callable[[Checkpoint], Checkpoint]) -> BaseWeights:
        """Return the same with other places of both."""
        return BaseWeights(function(self.base), function(self.first))


@lru_cache(maxsize=64)
def _say_new(base: str, first: str, names: str) -> None:
    logger.warning("tensors that %s lacks are those of %s at step 0: %s.", base, first, names)


class _BaseReader:
    def __init__(self, base: Reader, first: Reader) -> None:
        self._base, self._first = base, first
        base_names = base.names()
        pairs = {name: partner(name, base_names) for name in first.names()}
        self._pairs = {
            name: other
            for name, other in pairs.items()
            if other is not None and base.shape(other) == first.shape(name)
        }
        self.new = pairs.keys() - self._pairs.keys()

    def names(self) -> list[str]:
        return self._first.names()

    def shape(self, name: str) -> tuple[int, ...]:
        return self._first.shape(name)

    def dtype(self, name: str) -> torch.dtype:
        return self._first.dtype(name)

    def get(self, name: str) -> Tensor:
        return self._read(name, lambda reader, inner_name: reader.get(inner_name))

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        return self._read(name, lambda reader, inner_name: reader.rows(inner_name, start, stop))

    def _read(self, name: str, read: Callable[[Any, str], Tensor]) -> Tensor:
        if name in self._pairs:
            return read(self._base, self._pairs[name]).to(self.dtype(name))
        return read(self._first, name)
