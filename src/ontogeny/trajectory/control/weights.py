"""The weights of one checkpoint of a control."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...errors import (
    ArgumentError,
    CheckpointError,
    TooFewCheckpointsError,
    check_choice,
    check_whole,
)
from ..checkpoint import Checkpoint
from ..weights.digests import combine
from ..weights.files import MemoryWeights, Reader, TensorReader, Weights, state_tensors
from .kinds import BY_ONE_MOTION, KINDS
from .reader import ControlReader, kept_names
from .sources import Sources, is_bounded, remember_lengths

_VERSION = "4"  # of what is computed; digests of controls depend on it


@dataclass(frozen=True, eq=False)
class ControlWeights:
    """What a checkpoint of a control is computed from, and how; nothing is computed yet.

    Attributes
    ----------
    kind, random_state
        Of the control.
    path
        Checkpoints of the source that are read, by increasing step; the first is where the
        control begins.
    at
        Which of them has the step of the control's checkpoint.
    """

    kind: str
    random_state: int
    path: tuple[Checkpoint, ...]
    at: int

    @property
    def name(self) -> str:
        """Return kind and seed, such as ``"turned 0"``."""
        return f"{self.kind} {self.random_state}"

    @property
    def here(self) -> Checkpoint:
        """Return the source's checkpoint of the same step."""
        return self.path[self.at]

    @property
    def sources(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints that are read."""
        return self.path

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader that computes each tensor when it is asked for.

        Raises
        ------
        CheckpointError
            If a source cannot be read, or a bound on the revisions on disk does not allow it.
        """
        self._prepare()
        with ExitStack() as stack:
            single = self.kind in BY_ONE_MOTION
            sources = Sources(self.path, self.at, stack, single)
            first = (
                first_names(self.path[0].weights, sources.reader(0)) if self.at else {}
            )
            names = kept_names(self.here) if self.at else frozenset()
            yield ControlReader(sources, self.kind, self.random_state, names, first)

    def _prepare(self) -> None:
        """See to it that no more than one revision is needed beside the present one."""
        if self.kind == "turned" or self.at == 0 or not is_bounded(self.path):
            return
        if self.kind != "walk":
            raise CheckpointError(
                f"a control of kind {self.kind!r} reads other checkpoints at every step, and the "
                "revisions on disk are bounded, so they would be fetched again each time; "
                "download all first (ontogeny prefetch), or choose kind 'turned' or 'walk'."
            )
        remember_lengths(self.path)

    def on_disk(self) -> None:
        """Return None: what is computed lies in no file."""

    def digests(self, of: Callable[[Checkpoint], Mapping[str, str]]) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by the digests `of` the sources, kind and seed.

        At the first step they are those of the source, as the tensors are.
        """
        if self.at == 0:
            return dict(of(self.here))
        read = [of(checkpoint) for checkpoint in self.path]
        return {
            name: self._digest(
                {str(j): digests.get(name, "") for j, digests in enumerate(read)}
            )
            for name in read[self.at]
        }

    def file_digests(self) -> dict[str, str] | None:
        """Return one digest by those of the Hub's files, or None if the source is elsewhere."""
        here = self.here.file_digests()
        if here is None or self.at == 0:
            return here
        read = [checkpoint.file_digests() or {} for checkpoint in self.path]
        return {
            self.name: self._digest({str(j): combine(d) for j, d in enumerate(read)})
        }

    def _digest(self, read: Mapping[str, str]) -> str:
        made = {
            "control": _VERSION,
            "kind": self.kind,
            "random_state": str(self.random_state),
        }
        return combine({**made, "at": str(self.at), **read})

    def moved(self, function: Callable[[Checkpoint], Checkpoint]) -> ControlWeights:
        """Return the same with other places of the sources, such as another cache."""
        return replace(self, path=tuple(map(function, self.path)))


_SAMPLE = 64  # values that two tensors are compared by first


def first_names(weights: Weights, reader: Reader) -> dict[str, str]:
    """Return, for each name of an opened checkpoint, the first name of the same tensor.

    Tensors of modules, state dicts and pickled files are the same if they share memory. In
    safetensors, where nothing is shared, matrices are the same if they are equal at this
    checkpoint and not constant: models that tie them are stored so by some programs.

    Examples
    --------
    >>> state = {"embed": torch.rand(3, 2), "norm": torch.ones(2)}
    >>> weights = MemoryWeights({**state, "head": state["embed"]})
    >>> with weights.open() as reader:
    ...     first_names(weights, reader)
    {'embed': 'embed', 'norm': 'norm', 'head': 'embed'}
    """
    groups: dict[object, str] = {}
    first = {name: name for name in _order(weights, reader)}
    # Others read each tensor anew, often where one had just been freed: that had k_proj and v_proj
    # of safetensors moved alike, or not, as memory happened to lie.
    if isinstance(reader, TensorReader):
        for name in first:
            tensor = reader.get(name)
            place = (
                tensor.device,
                tensor.data_ptr(),
                tensor.dtype,
                tensor.shape,
                tensor.stride(),
            )
            first[name] = groups.setdefault(place, name) if tensor.numel() else name
    by_value: dict[object, list[str]] = {}
    for name in dict.fromkeys(first.values()):
        sample = _sample(reader, name)
        for other in by_value.setdefault(sample, []) if sample else ():
            if torch.equal(reader.get(name), reader.get(other)):
                first = {n: other if f == name else f for n, f in first.items()}
                break
        else:
            by_value.setdefault(sample, []).append(name)
    return first


def _order(weights: Weights, reader: Reader) -> Iterable[str]:
    """Return names in the order of the model, where it is known, so that embeddings come first."""
    if not isinstance(weights, MemoryWeights):
        return reader.names()
    source = weights.source
    return state_tensors(source) if isinstance(source, nn.Module) else source


def _sample(reader: Reader, name: str) -> object:
    """Return what equal matrices share, or None for what is constant or no matrix."""
    shape = reader.shape(name)
    if len(shape) < 2 or 0 in shape:
        return None
    values = reader.rows(name, 0, 1).detach().cpu().reshape(-1)[:_SAMPLE]
    if values.is_complex() or bool((values == values[0]).all()):
        return None
    return (shape, reader.dtype(name), tuple(values.double().tolist()))


@dataclass(frozen=True)
class Controlled:
    """What a control was made of.

    Attributes
    ----------
    kind, random_state
        How.
    of
        Where the source's checkpoints come from (`Trajectory.provenance`).
    path
        The source's folder, for its tokenizer, or None.
    """

    kind: str
    random_state: int
    of: dict[str, Any]
    path: Path | None


def control_checkpoints(
    checkpoints: Sequence[Checkpoint], kind: str, random_state: int, title: str
) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a control; nothing is read.

    Raises
    ------
    ArgumentError
        If kind or seed is unknown, there are too few checkpoints, or they are a control's.
    """
    check_choice("kind", kind, KINDS)
    random_state = check_whole("random_state", random_state, 0)
    if any(isinstance(c.derived, ControlWeights) for c in checkpoints):
        raise ArgumentError(
            f"{title} is a control already; make controls of the run itself, with other seeds."
        )
    fewest = 3 if kind == "shuffled" else 2
    if len(checkpoints) < fewest:
        raise TooFewCheckpointsError(
            f"a control of kind {kind!r} needs at least {fewest} checkpoints to have a motion; "
            f"{title} has {len(checkpoints)}."
        )
    made = []
    for i, checkpoint in enumerate(checkpoints):
        path, at = _path(checkpoints, kind, i)
        weights = ControlWeights(kind, random_state, path, at)
        made.append(
            Checkpoint(
                step=checkpoint.step,
                label=f"{checkpoint.label} ({weights.name})",
                path=None,
                weights=weights,
                template=checkpoint.template,
                tokens=checkpoint.tokens,
                source=checkpoint.source,
                derived=weights,
            )
        )
    return tuple(made)


def _path(
    checkpoints: Sequence[Checkpoint], kind: str, i: int
) -> tuple[tuple[Checkpoint, ...], int]:
    """Return the checkpoints that number i of a control is computed from, and its place there."""
    if i == 0:
        return (checkpoints[0],), 0
    if kind == "turned":
        return (checkpoints[0], checkpoints[i]), 1
    if kind == "walk":
        return tuple(checkpoints[: i + 1]), i
    return tuple(checkpoints), i
