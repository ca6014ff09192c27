"""Checkpoints that are computed from a base and an adapter."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import NamedTuple

import torch
from torch import nn

from ..checkpoint import Checkpoint
from ..weights.building import Template
from ..weights.digests import combine
from ..weights.files import Reader
from ..weights.names import map_names
from ..weights.transformers_models import file_targets, is_pretrained
from .building import base_module
from .merging import Merged, check_peft
from .mlx import MlxMerged, MlxSettings
from .reader import AdaptedReader, Layout
from .settings import AdapterSettings

_KEPT = 64  # adapters on their bases; each holds its own tensors, and shares the base's


@dataclass(frozen=True, eq=False)
class AdapterWeights:
    """A base with one adapter; peft merges what it changes when that is read."""

    base: Checkpoint
    settings: AdapterSettings
    label: str
    template: Template | None

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

    @property
    def own(self) -> Checkpoint:
        """Return what lies in the adapter's folder: its own tensors, without the base."""
        return Checkpoint(0, self.label, self.settings.folder, self.settings.place())

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader that merges each changed tensor when it is asked for.

        Raises
        ------
        MissingExtraError
            Without peft.
        CheckpointError
            If base or adapter cannot be read, or do not belong together.
        """
        if not isinstance(self.settings, MlxSettings):
            check_peft()
        with self.base.present() as there, there.open() as base:
            pair = _Pair.of(there, self)
            yield AdaptedReader(base, _layout(_Shape.of(pair)), partial(_merged, pair))

    def on_disk(self) -> None:
        """Return None: what is computed lies in no file."""

    def digests(self, of: Callable[[Checkpoint], Mapping[str, str]]) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by the digests `of` the base and that of the adapter."""
        base = of(self.base)
        how = self.settings.digest()
        with self.open() as reader:
            assert isinstance(reader, AdaptedReader)
            changed = {
                n: combine({"base": base.get(n, ""), "how": how})
                for n in reader.changed
            }
            return {name: changed.get(name) or base[name] for name in reader.names()}

    def file_digests(self) -> dict[str, str] | None:
        """Return digests by the Hub's files and the adapter; None if the base is elsewhere."""
        files = self.base.file_digests()
        return None if files is None else {**files, self.name: self.settings.digest()}

    def moved(self, function: Callable[[Checkpoint], Checkpoint]) -> AdapterWeights:
        """Return the same with another place of the base."""
        return replace(self, base=function(self.base))


@dataclass(frozen=True)
class _Base:
    """A base that is on this machine; equal as long as its files stay, and what builds it.

    What builds it comes to a process with each task: a module or a function is itself alone, other
    builders are equal if they build the same. By identity SmolLM2 was built for each of its
    matrices, in 10 s, until 24 GB were full.
    """

    stamp: object
    builder: Hashable
    checkpoint: Checkpoint = field(compare=False)
    template: Template | None = field(compare=False)

    @classmethod
    def of(cls, there: Checkpoint, template: Template | None) -> _Base:
        files = there.weights.on_disk()
        stamp = None if files is None else files.stamp()
        builder = template if isinstance(template, Hashable) else id(template)
        return cls((there.path, stamp), builder, there, template)


@dataclass(frozen=True)
class _Pair:
    """A base and an adapter on it; equal as long as the files of both stay."""

    base: _Base
    stamp: object
    table: str
    adapter: AdapterWeights = field(compare=False)

    @classmethod
    def of(cls, there: Checkpoint, adapter: AdapterWeights) -> _Pair:
        settings = adapter.settings
        table = json.dumps(settings.table, sort_keys=True)
        base = _Base.of(there, adapter.template)
        return cls(base, settings.files().stamp(), table, adapter)


@dataclass(frozen=True)
class _Shape:
    """What decides which tensors an adapter changes: not what they hold."""

    base: _Base
    table: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    pair: _Pair = field(compare=False)

    @classmethod
    def of(cls, pair: _Pair) -> _Shape:
        shapes = pair.adapter.settings.shapes()
        return cls(pair.base, pair.table, tuple(sorted(shapes.items())), pair)


class _OnBase(NamedTuple):
    """The module of a base, and what merges adapters with it and keeps them: they go with it."""

    module: nn.Module
    merged: Callable[[_Pair], Merged | MlxMerged]


@lru_cache(maxsize=2)
def _on_base(base: _Base, stored: frozenset[str]) -> _OnBase:
    module = base_module(base.checkpoint, base.template, stored)
    return _OnBase(module, lru_cache(maxsize=_KEPT)(partial(_merge, module)))


def _merge(module: nn.Module, pair: _Pair) -> Merged | MlxMerged:
    settings = pair.adapter.settings
    if isinstance(settings, MlxSettings):
        return MlxMerged(pair.adapter.label, settings, module)
    return Merged(pair.adapter.label, settings, module)


def _merged(pair: _Pair) -> Merged | MlxMerged:
    stored = frozenset(pair.adapter.settings.shapes())
    return _on_base(pair.base, stored).merged(pair)


@lru_cache(maxsize=16)
def _layout(shape: _Shape) -> Layout:
    """Return which tensors there are; each changed one is merged once for it."""
    merged = _merged(shape.pair)
    base = shape.base.checkpoint
    module = _on_base(shape.base, frozenset(name for name, _ in shape.shapes)).module
    with base.open() as reader:
        names = reader.names()
    to_file = map_names(module, names, base.path).to_file
    changed: dict[str, tuple[str, tuple[int, ...], torch.dtype]] = {}
    for name, (dimensions, dtype) in merged.shapes().items():
        changed.setdefault(to_file.get(name, name), (name, dimensions, dtype))
    # Experts may lie one by one in the files of the base, and be one tensor that is adapted.
    targets = file_targets(module, names) if is_pretrained(module) else {}
    inside = {n: target for n, (target, converts) in targets.items() if converts}
    inside = {name: target for name, target in inside.items() if target in changed}
    joined = frozenset(inside.values())
    return Layout(tuple(sorted({*names, *changed} - inside.keys())), changed, joined)
