"""One checkpoint is examined before a study starts: what matches, what is read, what it costs.

Of a model whose result for a text depends on what it is batched with, texts are read one by one.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch

from ... import capture
from ...capture.blocks import WeightBlock
from ...capture.logits import AT_ONCE, LogitRows, head_path
from ...capture.reading import PassKey, pass_keys, sources
from ...errors import BatchInvarianceError, CheckpointError
from ...inputs import Inputs
from ...needs import Losses, Need, Weights
from ...needs.predictions import Reduced
from ...observables import Observable
from ...trajectory import Trajectory
from ...trajectory.weights.placed import unplaced
from ...trajectory.weights.precision import promoted, widest
from ..cells.models import model_of, only_looks
from ..cells.readings import vocabulary_size
from ..folder.settings import DTYPES, Settings
from .dry_run import DryFailure, dry_run
from .guard import Fallback

log = logging.getLogger("ontogeny.study")


@dataclass(frozen=True)
class Probe:
    """What was found at one checkpoint.

    Attributes
    ----------
    reads
        Tensor names that each need depends on; None means all.
    passes
        The forward pass of each need that shares passes.
    bytes
        Bytes that the value of each need holds.
    layers
        Labels of the layers in the value of each need.
    blocks
        Weight blocks of each observable that is mapped over blocks, by node name.
    weight_blocks
        How each weight block is read, by its name; the same at every checkpoint.
    block_bytes
        Size in float32 of the stored tensors that weight blocks are read from.
    positions
        How position ids are given so that batches do not matter.
    batch_difference
        Largest relative difference between a text alone and in a padded batch.
    attention
        Attention implementation of the model, as transformers names it; empty elsewhere.
    stored_bytes
        Size of the stored weights of one checkpoint.
    model_bytes
        Size of the model in memory; 0 where its weights are only looked at.
    pass_bytes
        What a forward pass takes for one token beside the weights, about.
    dtype
        Floating-point dtype that the weights have while the model runs.
    fallback
        The plainer way in which the model is read, where the one that was asked for is not right.
    failures
        Observables that failed in a dry run, see `ontogeny.study.planning.dry_run`.
    depth
        How many blocks the model has; 0 where no family says it.
    """

    reads: Mapping[Need, frozenset[str] | None]
    passes: Mapping[Need, PassKey]
    bytes: Mapping[Need, int]
    layers: Mapping[Need, tuple[str, ...]]
    blocks: Mapping[str, tuple[str, ...]]
    weight_blocks: Mapping[str, WeightBlock]
    block_bytes: Mapping[str, int]
    positions: str
    batch_difference: float
    model_class: str
    attention: str
    parameters: int
    stored_bytes: int
    model_bytes: int
    pass_bytes: int
    dtype: str
    fallback: Fallback = field(default_factory=Fallback)
    failures: tuple[DryFailure, ...] = ()
    depth: int = 0

    def resolved(self, settings: Settings) -> Settings:
        """Return the settings with what had to be found out."""
        found = dataclasses.replace(
            settings, positions=self.positions, dtype=self.dtype
        )
        return self.fallback.of(found)

    def layers_of(self, observable: Observable) -> tuple[str, ...]:
        """Return the labels of the layers that an observable reads of a checkpoint."""
        labels = (
            self.layers[need] for need in observable.needs() if need in self.layers
        )
        return tuple(dict.fromkeys(chain.from_iterable(labels)))


def needs_of_steps(observables: Sequence[Observable]) -> list[Need]:
    """Return what observables need of a checkpoint, each need once."""
    needs = chain.from_iterable(observable.needs() for observable in observables)
    at_step = dict.fromkeys(need.at_step for need in needs)
    return [need for need in at_step if need.over == "step"]


def probe(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
    tried: Sequence[Observable] = (),
) -> Probe:
    """Examine the one checkpoint of a trajectory; `tried` are the observables that get a dry run.

    Raises
    ------
    LayerMatchError, ArgumentError
        What would otherwise fail hours later.
    CheckpointError, NonFiniteError
        If the checkpoint cannot be read.
    """
    (checkpoint,) = trajectory
    skeleton = trajectory.skeleton(device=settings.device, dtype=settings.torch_dtype())
    of_steps = needs_of_steps(observables)
    if only_looks(of_steps):
        model = skeleton.mapped(checkpoint)
    else:
        model = model_of(skeleton, checkpoint, of_steps, settings)
    by_need = sources(model, of_steps, inputs, settings.reading_settings())
    layers: dict[Need, tuple[str, ...]] = {}
    for need, source in by_need.items():
        need.check(source)  # what does not fit is refused now, not hours later
        if labels := need.labels(source):
            layers[need] = labels
    positions = "auto"
    difference = 0.0
    fallback = Fallback()
    if any(need.runs_model for need in by_need):
        positions, difference, fallback = _in_batches(model, inputs, layers, settings)
    dtype = settings.dtype if settings.dtype != "stored" else _dtype_of(model)
    settings = fallback.of(
        dataclasses.replace(settings, positions=positions, dtype=dtype)
    )
    # Again, as the tensors that a need reads are traced with the positions that were found.
    by_need = sources(model, of_steps, inputs, settings.reading_settings())
    keys = pass_keys(by_need)
    with checkpoint.open() as reader:
        numbers = {name: math.prod(reader.shape(name)) for name in reader.names()}
        stored_bytes = sum(
            n * reader.dtype(name).itemsize for name, n in numbers.items()
        )
        blocks = {o.name: _blocks(reader, o) for o in observables if o.over_blocks}
        configuration = checkpoint.configuration()
        tokens = vocabulary_size(trajectory)
        weight_blocks = {
            name: capture.weight_block(reader, name, configuration, tokens)
            for name in set(itertools.chain.from_iterable(blocks.values()))
        }
    names = skeleton.file_names()
    return Probe(
        reads={
            n: _names(n.tensors(source), names, set(numbers))
            for n, source in by_need.items()
        },
        passes={need: key for need, key in keys.items() if key is not None},
        bytes={need: need.size(source) for need, source in by_need.items()},
        layers=layers,
        blocks=blocks,
        weight_blocks=weight_blocks,
        block_bytes={b.tensor: 4 * numbers[b.tensor] for b in weight_blocks.values()},
        positions=positions,
        batch_difference=difference,
        model_class=type(model).__name__,
        attention=str(
            getattr(getattr(model, "config", None), "_attn_implementation", "")
        ),
        parameters=sum(p.numel() for p in model.parameters()),
        stored_bytes=stored_bytes,
        model_bytes=_model_bytes(model, dtype, settings, of_steps),
        pass_bytes=_pass_bytes(by_need, layers, settings.batch_size),
        dtype=dtype,
        fallback=fallback,
        failures=tuple(dry_run(model, trajectory, inputs, tried, settings)),
        depth=_depth(model),
    )


def _depth(model: Any) -> int:
    known = capture.family_of(model) is not None
    return len(capture.match_layers(model, "resid")) if known else 0


def _in_batches(
    model: Any,
    inputs: Mapping[str, Inputs],
    layers: Mapping[Need, Sequence[str]],
    settings: Settings,
) -> tuple[str, float, Fallback]:
    """Return what `_invariance` does, and that texts are read one by one where batches matter."""
    try:
        return *_invariance(model, inputs, layers), Fallback()
    except BatchInvarianceError as error:
        note = f"texts are read one by one, without padding: {error}"
        notes = (note,) if settings.batch_size > 1 else ()
        # A text alone has no padding.
        return "right", 0.0, Fallback(batch_size=1, notes=notes)


def _invariance(
    model: Any, inputs: Mapping[str, Inputs], layers: Mapping[Need, Sequence[str]]
) -> tuple[str, float]:
    """Return how positions are given so that batches do not matter, and by how much they do."""
    watched = sorted(set(chain.from_iterable(layers.values())))
    checks = [
        capture.check_batch_invariance(model, part, watched or None)
        for part in inputs.values()
    ]
    # One way for all input sets: the strictest that any of them needs.
    positions = max((c.positions for c in checks), key=("model", "mask", "right").index)
    return positions, max(check.difference for check in checks)


def _model_bytes(
    model: Any, dtype: str, settings: Settings, needs: Sequence[Need]
) -> int:
    """Return the bytes of the weights and of the largest of them, which is read beside them."""
    if only_looks(needs):
        return 0
    sizes = [p.numel() * getattr(torch, dtype).itemsize for p in model.parameters()]
    streamed = settings.weights == "streamed" and not any(
        need.exclusive for need in needs
    )
    return max(sizes, default=0) + (0 if streamed else sum(sizes))


def _pass_bytes(
    by_need: Mapping[Need, capture.ModelSource],
    layers: Mapping[Need, Sequence[str]],
    batch_size: int,
) -> int:
    """Return what a forward pass takes for one token: the widest output, as it comes and goes.

    In float32, in which losses are taken: input, output, and one more of it. The vocabulary map
    counts where a need has no layers that a pass is stopped after; of a batch no more than is
    held at once, if its logits are taken in parts.
    """
    running = {need: source for need, source in by_need.items() if need.runs_model}
    if not running:
        return 0
    source = next(iter(running.values()))
    # Nothing is inside that could be listed.
    if next(source.model.children(), None) is None:
        return 0
    shapes = source.trace.shapes.items()
    widths: dict[str | None, int] = {
        p: math.prod(s[2:]) for p, s in shapes if len(s) > 2
    }
    head = head_path(source.model)
    mapped = running.keys() - layers.keys()
    if not mapped:
        widths.pop(head, None)
    elif all(isinstance(need, Losses | Reduced) for need in mapped):
        tokens = batch_size * max(int(s.inputs.lengths.max()) for s in running.values())
        rows = LogitRows.of(source.model, in_parts=True)
        if rows.is_large(tokens) and rows.learn(source.model, source.inputs):
            widths[head] = AT_ONCE // tokens
    return 3 * 4 * max(widths.values(), default=0)


def _dtype_of(model: Any) -> str:
    """Return the dtype that holds all weights of a model as they were loaded."""
    dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
    return _name(promoted(*dtypes)) if dtypes else "float32"


def widest_stored(dtype: str, trajectory: Trajectory) -> str:
    """Return the dtype that holds the weights of all checkpoints on this machine without loss.

    A run may store some of its checkpoints in half precision only.
    """
    widest_dtype = getattr(torch, dtype)
    for checkpoint in trajectory:
        if unplaced(checkpoint.template) is None and checkpoint.is_downloaded:
            try:
                with checkpoint.open() as reader:
                    widest_dtype = promoted(widest_dtype, widest(reader))
            except CheckpointError as error:  # of its own cells, later
                log.debug("step %d cannot be opened: %s", checkpoint.step, error)
    return _name(widest_dtype)


def _name(dtype: torch.dtype) -> str:
    """Return the name of a dtype that models run in: eight bits only store weights."""
    name = str(dtype).removeprefix("torch.")
    return name if name in DTYPES else "float32"


def _blocks(reader: Any, observable: Observable) -> tuple[str, ...]:
    """Return the weight blocks that an observable is mapped over."""
    patterns = (n.patterns for n in observable.needs() if isinstance(n, Weights))
    names = (capture.match_blocks(reader, pattern) for pattern in patterns)
    return tuple(chain.from_iterable(names))


def _names(
    tensors: set[str] | None, file_names: Mapping[str, str], file_keys: set[str]
) -> frozenset[str] | None:
    """Return tensors under the names that files give them; None where one cannot be traced."""
    if tensors is None:
        return None
    traced = {file_names.get(name) for name in tensors}
    names = frozenset(name for name in traced if name is not None and name in file_keys)
    return names if None not in traced and len(names) == len(traced) else None
