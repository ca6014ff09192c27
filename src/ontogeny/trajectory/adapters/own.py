"""What is known of a run of adapters by their own tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...errors import CheckpointError, MissingExtraError
from ..checkpoint import Checkpoint
from ..findings import Finding
from .base import AbsentBase
from .reader import AdaptedReader
from .weights import AdapterWeights


def own_tensors(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Return what lies in the folders of a run: of adapters their own tensors, without the base."""
    run = list(checkpoints)
    if not any(isinstance(c.derived, AdapterWeights) for c in run):
        return run
    adapters = [
        (c.step, c.derived) for c in run if isinstance(c.derived, AdapterWeights)
    ]
    return [replace(weights.own, step=step) for step, weights in adapters]


def absent_base(checkpoints: Iterable[Checkpoint]) -> str:
    """Return why the base of a run is not here; empty where it is, or there is none."""
    for checkpoint in checkpoints:
        for source in checkpoint.sources:
            if isinstance(source.weights, AbsentBase):
                return source.weights.why
    return ""


def unread_adapters(checkpoints: Iterable[Checkpoint]) -> Iterator[Finding]:
    """Yield the adapters that do not belong to their base, where that and peft are here."""
    for checkpoint in checkpoints:
        is_here = not absent_base([checkpoint]) and checkpoint.is_downloaded
        if not is_here or not isinstance(checkpoint.derived, AdapterWeights):
            continue
        try:
            with checkpoint.open() as reader:
                assert isinstance(reader, AdaptedReader)
                reader.get(min(reader.changed))
        except MissingExtraError:
            return
        except CheckpointError as error:
            text = f"step {checkpoint.step} is no model: {error}"
            yield Finding("unreadable", "certain", (checkpoint.step,), text)
