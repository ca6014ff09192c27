"""One checkpoint is examined before a study starts: what matches, what is read, what it costs.

It also refuses a model whose result for a text depends on what the text is batched with.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from .. import capture
from ..capture.reading import pass_keys
from ..errors import CheckpointError, NonFiniteError, check_choice
from ..inputs import Inputs
from ..needs import Need, Weights
from ..observables import Observable
from ..trajectory import Trajectory
from .dry_run import DryFailure, confirmed, dry_run
from .readings import vocabulary_size
from .settings import Settings

log = logging.getLogger("ontogeny.study")


@dataclass(frozen=True)
class Probe:
    """What was found at one checkpoint: see the fields."""

    reads: Mapping[Need, frozenset[str] | None]
    """Tensor names that each need depends on; None means all."""
    passes: Mapping[Need, capture.PassKey]
    """The forward pass of each need that shares passes."""
    bytes: Mapping[Need, int]
    """Bytes that the value of each need holds."""
    layers: Mapping[Need, tuple[str, ...]]
    """Labels of the layers in the value of each need."""
    blocks: Mapping[str, tuple[str, ...]]
    """Weight blocks of each observable that is mapped over blocks, by node name."""
    weight_blocks: Mapping[str, capture.WeightBlock]
    """How each weight block is read, by its name; the same at every checkpoint."""
    block_bytes: Mapping[str, int]
    """Size in float32 of the stored tensors that weight blocks are read from."""
    positions: str
    """How position ids are given so that batches do not matter."""
    batch_difference: float
    """Largest relative difference between a text alone and in a padded batch."""
    model_class: str
    attention: str
    """Attention implementation of the model, as transformers names it; empty elsewhere."""
    parameters: int
    failures: tuple[DryFailure, ...] = ()
    """Observables that failed in a dry run, see `ontogeny.study.dry_run`."""

    def layers_of(self, observable: Observable) -> tuple[str, ...]:
        """Return the labels of the layers that an observable reads of a checkpoint."""
        labels = (self.layers[need] for need in observable.needs() if need in self.layers)
        return tuple(dict.fromkeys(label for each in labels for label in each))


def probe(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
    hold: Callable[[Trajectory], AbstractContextManager[Trajectory]] = nullcontext,
    tried: Sequence[Observable] = (),
) -> Probe:
    """Examine the first checkpoint, or another where that one cannot be read.

    `hold` gives a context with a trajectory that is read within the bound on disk; `tried` are the
    observables that get a dry run.

    Raises
    ------
    LayerMatchError, BatchInvarianceError, ArgumentError
        What would otherwise fail hours later.
    CheckpointError, NonFiniteError
        If none of three checkpoints can be read: what was wrong with the first.
    """
    for name in (need.at_step.on for o in observables for need in o.needs()):
        if name is not None:
            check_choice("on", name, inputs)
    for observable in observables:
        observable.check_inputs(inputs)
    steps = [int(s) for s in trajectory.steps]
    first: Exception | None = None
    for step in dict.fromkeys([*steps[:2], steps[-1]]):
        try:
            with hold(trajectory.select(steps=[step])) as present:
                found = _probe_at(present, inputs, observables, settings, tried)
            settings = dataclasses.replace(settings, positions=found.positions)
            failures = confirmed(found.failures, trajectory, inputs, tried, settings)
            return dataclasses.replace(found, failures=failures)
        except (CheckpointError, NonFiniteError) as error:
            log.debug("step %d cannot be read: %s", step, error)
            first = first or error
    assert first is not None
    raise first


def _probe_at(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
    tried: Sequence[Observable],
) -> Probe:
    (checkpoint,) = trajectory
    skeleton = trajectory.skeleton(device=settings.device, dtype=settings.torch_dtype())
    model = skeleton.load(checkpoint)
    needs = dict.fromkeys(n.at_step for o in observables for n in o.needs())
    of_steps = [need for need in needs if need.over == "step"]
    found = capture.sources(model, of_steps, inputs, settings.reading_settings())
    layers: dict[Need, tuple[str, ...]] = {}
    for need, source in found.items():
        need.check(source)  # what does not fit is refused now, not hours later
        if labels := need.labels(source):
            layers[need] = labels
    positions, difference = "auto", 0.0
    if any(need.runs_model for need in found):
        watched = sorted({label for labels in layers.values() for label in labels})
        checks = [
            capture.check_batch_invariance(model, each, watched or None) for each in inputs.values()
        ]
        difference = max(check.difference for check in checks)
        positions = max((c.positions for c in checks), key=("model", "mask", "right").index)
    settings = dataclasses.replace(settings, positions=positions)
    found = capture.sources(model, of_steps, inputs, settings.reading_settings())
    keys = pass_keys(found)
    with checkpoint.open() as reader:
        stored = set(reader.names())
        tensor_bytes = {name: 4 * math.prod(reader.shape(name)) for name in stored}
        blocks = {o.name: _blocks(reader, o) for o in observables if o.over_blocks}
        configuration, tokens = checkpoint.configuration(), vocabulary_size(trajectory)
        weight_blocks = {
            name: capture.weight_block(reader, name, configuration, tokens)
            for name in {name for each in blocks.values() for name in each}
        }
    names = skeleton.file_names()
    return Probe(
        reads={n: _stored(n.tensors(source), names, stored) for n, source in found.items()},
        passes={need: key for need, key in keys.items() if key is not None},
        bytes={need: need.size(source) for need, source in found.items()},
        layers=layers,
        blocks=blocks,
        weight_blocks=weight_blocks,
        block_bytes={b.tensor: tensor_bytes[b.tensor] for b in weight_blocks.values()},
        positions=positions,
        batch_difference=difference,
        model_class=type(model).__name__,
        attention=str(getattr(getattr(model, "config", None), "_attn_implementation", "")),
        parameters=sum(p.numel() for p in model.parameters()),
        failures=tuple(dry_run(model, trajectory, inputs, tried, settings)),
    )


def _blocks(reader: Any, observable: Observable) -> tuple[str, ...]:
    """Return the weight blocks that an observable is mapped over."""
    patterns = (n.patterns for n in observable.needs() if isinstance(n, Weights))
    return tuple(name for each in patterns for name in capture.match_blocks(reader, each))


def _stored(
    tensors: set[str] | None, file_names: Mapping[str, str], stored: set[str]
) -> frozenset[str] | None:
    """Return tensors under the names that files give them; None where one cannot be traced."""
    if tensors is None:
        return None
    traced = {file_names.get(name) for name in tensors}
    known = frozenset(name for name in traced if name is not None and name in stored)
    return known if None not in traced and len(known) == len(traced) else None
