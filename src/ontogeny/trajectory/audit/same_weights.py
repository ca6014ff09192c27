"""Which weights are there twice, by looking at them up to the first difference."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..findings import Finding, join_steps
from ..opening import Catalogue
from ..order.readings import NO_STEP
from ..weights.files import Weights
from ..weights.folders import find_weights

_MOST = 5  # files without a step that are looked at


def copies(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield neighbours with the same weights, and a last checkpoint that is the first."""
    pairs = [*itertools.pairwise(checkpoints)]
    if len(checkpoints) > 2:
        pairs.append((checkpoints[0], checkpoints[-1]))
    for one, other in pairs:
        if _same(one.weights, other.weights):
            steps = (one.step, other.step)
            text = f"{join_steps(steps)} hold the same weights, byte for byte"
            yield Finding("identical", "certain", steps, text)


def without_a_step(
    folder: Path, catalogue: Catalogue, checkpoints: Sequence[Checkpoint]
) -> Iterator[Finding]:
    """Yield what was left out as it has no step, and is a checkpoint that was taken."""
    left_out = () if catalogue.order is None else catalogue.order.left_out
    for name in [name for name, why in left_out if why == NO_STEP][:_MOST]:
        try:
            weights = find_weights(folder / name, catalogue.choice.key)
        except CheckpointError:
            continue
        step = next((c.step for c in checkpoints[::-1] if _same(weights, c.weights)), None)
        if step is not None:
            text = f"{name}, which was left out, holds the weights of step {step}, byte for byte"
            yield Finding("identical", "certain", (step,), text)


def _same(one: Weights, other: Weights) -> bool:
    """Return whether two hold the same tensors; small ones, which any training moves, first."""
    try:
        with one.open() as first, other.open() as second:
            names = sorted(first.names(), key=lambda name: torch.Size(first.shape(name)).numel())
            return set(names) == set(second.names()) and all(
                first.shape(name) == second.shape(name)
                and first.dtype(name) == second.dtype(name)
                and torch.equal(first.get(name), second.get(name))
                for name in names
            )
    except CheckpointError:  # the audit of the result says what is wrong with it
        return False
