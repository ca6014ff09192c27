"""The look at one checkpoint before a study starts: what matches, what is read, what it costs.

It also refuses a model whose result for a text depends on what the text is batched with.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from torch import nn

from .. import capture
from ..errors import ArgumentError, CheckpointError, NonFiniteError, suggestion
from ..inputs import Inputs
from ..needs import Activations, Gradients, InputSet, Model, Need, Reference, Series, Weights
from ..observables import Observable
from ..trajectory import Trajectory
from .readings import vocabulary_size
from .settings import Settings

__all__ = ["Probe", "probe"]

log = logging.getLogger("ontogeny.study")


@dataclass(frozen=True)
class Probe:
    """What one checkpoint told: see the fields."""

    reads: Mapping[Need, frozenset[str] | None]
    """Tensor names that each need depends on; None where they cannot be told apart: all."""
    blocks: Mapping[str, tuple[str, ...]]
    """Weight blocks of each observable that is mapped over blocks, by node name."""
    weight_blocks: Mapping[str, capture.WeightBlock]
    """How each weight block is read, by its name; the same at every checkpoint."""
    block_bytes: Mapping[str, int]
    """Size in float32 of the stored tensors that weight blocks are read from."""
    bytes: Mapping[Activations, int]
    """Size of each activation reading in float32."""
    layers: Mapping[Activations, tuple[str, ...]]
    """Module paths of each activation reading."""

    def layers_of(self, observable: Observable) -> tuple[str, ...]:
        """Return the module paths that an observable's activations are read from."""
        needs = (need for need in observable.needs() if isinstance(need, Activations))
        return tuple(dict.fromkeys(path for need in needs for path in self.layers[need]))

    positions: str
    """How position ids are given so that batches do not matter."""
    batch_difference: float
    """Largest relative difference between a text alone and in a padded batch."""
    model_class: str
    attention: str
    """Attention implementation of the model, as transformers names it; empty elsewhere."""
    parameters: int


def probe(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
    hold: Callable[[Trajectory], AbstractContextManager[Trajectory]] = nullcontext,
) -> Probe:
    """Look at the first checkpoint, or at another where that one cannot be read.

    `hold` gives a context with a trajectory that is read within the bound on disk.

    Raises
    ------
    LayerMatchError, BatchInvarianceError, ArgumentError
        What would otherwise fail hours later.
    CheckpointError, NonFiniteError
        If none of three checkpoints can be read: what was wrong with the first.
    """
    _check_names([_plain(n) for o in observables for n in o.needs()], inputs)
    for observable in observables:
        observable.check_inputs(inputs)
    steps = [int(s) for s in trajectory.steps]
    first: Exception | None = None
    for step in dict.fromkeys([*steps[:2], steps[-1]]):
        try:
            with hold(trajectory.select(steps=[step])) as present:
                return _probe_at(present, inputs, observables, settings)
        except (CheckpointError, NonFiniteError) as error:
            log.debug("step %d cannot be looked at: %s", step, error)
            first = first or error
    assert first is not None
    raise first


def _probe_at(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
) -> Probe:
    (checkpoint,) = trajectory
    skeleton = trajectory.skeleton(device=settings.device, dtype=settings.torch_dtype())
    model = skeleton.load(checkpoint)
    needs = list(dict.fromkeys(_plain(n) for o in observables for n in o.needs()))
    forward = [
        n for n in needs if not isinstance(n, Weights | Model | Gradients | InputSet | Series)
    ]
    differentiated = [n for n in needs if isinstance(n, Gradients)]
    for need in differentiated:
        capture.gradients(model, need, inputs)  # an unknown loss is said now, not hours later
    layers = {
        n: tuple(capture.match_layers(model, n.patterns))
        for n in forward
        if isinstance(n, Activations)
    }
    positions, difference = "auto", 0.0
    if forward or differentiated:
        watched = sorted({path for paths in layers.values() for path in paths})
        found = [
            capture.check_batch_invariance(model, each, watched or None) for each in inputs.values()
        ]
        difference = max(f.difference for f in found)
        positions = max((f.positions for f in found), key=("model", "mask", "right").index)
    settings = dataclasses.replace(settings, positions=positions)
    sizes = {n: _size(model, n, inputs) for n in layers}
    with checkpoint.open() as reader:
        names = list(reader.names())
        tensor_bytes = {name: 4 * math.prod(reader.shape(name)) for name in names}
        blocks = {
            o.name: tuple(
                block
                for need in o.needs()
                if isinstance(need, Weights)
                for block in capture.match_blocks(reader, need.patterns)
            )
            for o in observables
            if o.over_blocks
        }
        configuration, tokens = checkpoint.configuration(), vocabulary_size(trajectory)
        weight_blocks = {
            name: capture.weight_block(reader, name, configuration, tokens)
            for name in {name for each in blocks.values() for name in each}
        }
    return Probe(
        reads=_reads(model, forward, inputs, settings, skeleton.file_names(), set(names))
        | {need: frozenset() for need in needs if isinstance(need, InputSet)},
        blocks=blocks,
        weight_blocks=weight_blocks,
        block_bytes={b.tensor: tensor_bytes[b.tensor] for b in weight_blocks.values()},
        bytes=sizes,
        layers=layers,
        positions=positions,
        batch_difference=difference,
        model_class=type(model).__name__,
        attention=str(getattr(getattr(model, "config", None), "_attn_implementation", "")),
        parameters=sum(p.numel() for p in model.parameters()),
    )


def _plain(need: Need) -> Need:
    return need.need if isinstance(need, Reference) else need


def _check_names(needs: Sequence[Need], inputs: Mapping[str, Inputs]) -> None:
    for need in needs:
        name = getattr(need, "on", None)
        if name is not None and name not in inputs:
            known = ", ".join(map(repr, inputs))
            raise ArgumentError(
                f"on={name!r} names no input set of the study; it has {known}."
                f"{suggestion(name, inputs)}"
            )


def _inputs_of(need: Need, inputs: Mapping[str, Inputs]) -> Inputs:
    name = getattr(need, "on", None)
    return inputs[name] if name is not None else next(iter(inputs.values()))


def _size(model: nn.Module, need: Activations, inputs: Mapping[str, Inputs]) -> int:
    rows = len(_inputs_of(need, inputs).sample(need.tokens, need.max_tokens, need.random_state))
    shapes = [info.shape for info in capture.list_layers(model, need.patterns)]
    return rows * 4 * sum(int(shape[-1]) for shape in shapes if shape)


def _reads(
    model: nn.Module,
    needs: Sequence[Need],
    inputs: Mapping[str, Inputs],
    settings: Settings,
    file_names: Mapping[str, str],
    stored: set[str],
) -> dict[Need, frozenset[str] | None]:
    """Return the stored tensors behind each need; None where a name cannot be traced."""
    reading = capture.ReadingSettings(
        batch_size=settings.batch_size, device=settings.device, positions=settings.positions
    )
    reads: dict[Need, frozenset[str] | None] = {}
    for need, names in capture.modules_read(model, needs, inputs, reading).items():
        traced = {file_names.get(name) for name in names}
        known = frozenset(name for name in traced if name is not None and name in stored)
        reads[need] = known if None not in traced and len(known) == len(traced) else None
    return reads
