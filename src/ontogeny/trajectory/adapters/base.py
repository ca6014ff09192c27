"""The base of a fine-tuning as step 0 of its run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..weights.digests import combine
from ..weights.files import Reader
from ..weights.inert import few
from .reader import AdaptedReader

logger = logging.getLogger("ontogeny.trajectory")


@dataclass(frozen=True)
class AbsentBase:
    """The weights of a base that is not here, and what builds it; only what uses them fails."""

    why: str

    def __call__(self) -> nn.Module:
        """Raise CheckpointError."""
        raise CheckpointError(self.why)

    def open(self) -> Any:
        """Raise CheckpointError."""
        raise CheckpointError(self.why)

    def on_disk(self) -> None:
        """Raise CheckpointError."""
        raise CheckpointError(self.why)


def partner(name: str, names: Iterable[str]) -> str | None:
    """Return the stored name of a tensor, where the files may have more or less of its path.

    Examples
    --------
    >>> (
    ...     partner("transformer.h.0.weight", ["h.0.weight"]),
    ...     partner("h.0.w", ["a.h.0.w", "b.h.0.w"]),
    ... )
    ('h.0.weight', None)
    """
    names = list(names)
    if name in names:
        return name
    near = [n for n in names if n.endswith(f".{name}") or name.endswith(f".{n}")]
    return near[0] if len(near) == 1 else None


@dataclass(frozen=True, eq=False)
class BaseWeights:
    """A base as step 0 of a run: the tensors of the run's first checkpoint, as the base has them.

    Tensors that the base lacks, or has in another shape, are those of the first checkpoint; so are
    the rows of tokens that were added to its vocabulary.
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
        configuration = self.base.configuration() or {}
        texts = configuration.get("text_config") or {}
        tokens = configuration.get("vocab_size", texts.get("vocab_size"))
        with self.base.open() as base, self.first.open() as first:
            reader = _BaseReader(base, first, tokens)
            if reader.new:
                _say_new(self.base.label, self.first.label, few(sorted(reader.new)))
            yield reader

    def on_disk(self) -> None:
        """Return None: what is put together lies in no file."""

    def digests(self, of: Callable[[Checkpoint], Mapping[str, str]]) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by those of both."""
        base = of(self.base)
        first = of(self.first)
        pairs = {name: partner(name, base) for name in first}
        # The dtype is the run's, and the shapes decide which is read.
        return {
            name: combine(
                {"base": base[inner_name] if inner_name else "", "first": first[name]}
            )
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
    logger.warning(
        "tensors that %s lacks are those of %s at step 0: %s.", base, first, names
    )


class _BaseReader:
    def __init__(self, base: Reader, first: Reader, tokens: int | None) -> None:
        self._base = base
        self._first = first
        base_names = base.names()
        pairs = {name: partner(name, base_names) for name in first.names()}
        self._pairs: dict[str, str] = {}
        self._added: dict[str, int] = {}  # rows of tokens that the base does not have
        for name, other in pairs.items():
            shape = first.shape(name)
            before = () if other is None else base.shape(other)
            is_longer = (
                before and shape[1:] == before[1:] and shape[0] > before[0] == tokens
            )
            if other is not None and (shape == before or is_longer):
                self._pairs[name] = other
                self._added |= {name: before[0]} if is_longer else {}
        self._joined = first.joined if isinstance(first, AdaptedReader) else frozenset()
        rows = {f"{name} from row {start} on" for name, start in self._added.items()}
        self.new = (pairs.keys() - self._pairs.keys() - self._joined) | rows

    def names(self) -> list[str]:
        return self._first.names()

    def shape(self, name: str) -> tuple[int, ...]:
        return self._first.shape(name)

    def dtype(self, name: str) -> torch.dtype:
        return self._first.dtype(name)

    def get(self, name: str) -> Tensor:
        if name in self._joined:
            assert isinstance(self._first, AdaptedReader)
            return self._first.before(name)
        if name not in self._pairs:
            return self._first.get(name)
        before = self._base.get(self._pairs[name]).to(self.dtype(name))
        if name not in self._added:
            return before
        return torch.cat(
            [before, self._first.rows(name, self._added[name], self.shape(name)[0])]
        )

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        if name in self._added or name in self._joined:
            return self.get(name)[start:stop]
        if name not in self._pairs:
            return self._first.rows(name, start, stop)
        return self._base.rows(self._pairs[name], start, stop).to(self.dtype(name))
