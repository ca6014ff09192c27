"""What the cells of a plan cost: passes, weights read, and bytes held and stored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..inputs import Inputs
from ..needs import Need, Reference
from ..observables import Observable
from .graph import BlockCell, ReferenceCell, StateCell, StepCell
from .memory import held_about
from .plan import Entry, Plan
from .probe import Probe
from .settings import Settings
from .shared import SHARED_BYTES


def price(
    plan: Plan,
    probe: Probe,
    inputs: Mapping[str, Inputs],
    by_name: Mapping[str, Observable],
    settings: Settings,
    others: Sequence[Sequence[Need]] = (),
) -> None:
    """Write into a plan what its cells cost.

    `others` are the needs that states read of further checkpoints, as far as that is known.
    """
    entries = [e for e in [*plan.prepared, *plan.entries] if e.to_do]
    groups: dict[Any, list[Need]] = {}
    for entry in entries:
        needs = entry.cell.needs(by_name)
        if needs or isinstance(entry.cell, StepCell | StateCell):
            group = entry.key if entry.cell.observed else "prepared"
            groups.setdefault(group, []).extend(needs)
    readings: list[Sequence[Need]] = [*groups.values(), *others]
    batch_size = settings.batch_size
    for reading in readings:
        keys = {probe.passes[need] for need in reading if need in probe.passes}
        plan.forwards += len(keys)
        plan.batches += sum(-(-len(inputs[key.on]) // batch_size) for key in keys)
        plan.activation_bytes = max(plan.activation_bytes, _held(reading, probe))
    states = [by_name[e.node] for e in entries if isinstance(e.cell, StateCell)]
    to_prepare = max((_to_prepare(o, probe, inputs, len(plan.steps)) for o in states), default=0)
    plan.fitted_bytes = to_prepare
    prepared = _held(groups.get("prepared", ()), probe) + to_prepare
    plan.activation_bytes = max(plan.activation_bytes, prepared)
    blocks = any(isinstance(entry.cell, BlockCell) for entry in entries)
    plan.retained_bytes = sum(probe.block_bytes.values()) * len(plan.steps) * blocks
    read = len(readings) + len(plan.steps) * blocks
    if settings.weights == "streamed":  # all is read again for every batch
        read = max(read, plan.batches)
    plan.weight_bytes = probe.stored_bytes * read
    plan.model_bytes = probe.model_bytes
    references = {e.cell.need for e in entries if isinstance(e.cell, ReferenceCell)}
    plan.reference_bytes = _held(references, probe)
    tokens = max((batch_size * int(i.lengths.max()) for i in inputs.values()), default=0)
    steps = [e for e in entries if isinstance(e.cell, StepCell)]
    of_steps = {need for e in steps for need in by_name[e.node].needs()}
    beside = _held({need.at_step for need in of_steps if isinstance(need, Reference)}, probe)
    plan.shared_bytes = _shared(steps, by_name, probe, inputs)
    plan.memory_bytes = plan.shared_bytes + held_about(
        probe.model_bytes,
        tokens * probe.pass_bytes,
        plan.activation_bytes,
        beside,
        max((_largest_layer(reading, probe, inputs) for reading in readings), default=(0, 0)),
    )
    plan.device = settings.device
    if settings.device != "cpu":  # the sample of the reference step stays on the host
        plan.device_bytes = plan.memory_bytes - beside


def _shared(
    steps: Sequence[Entry],
    by_name: Mapping[str, Observable],
    probe: Probe,
    inputs: Mapping[str, Inputs],
) -> int:
    """Return the bytes of rotations that several observables share at one step, within the bound.

    Of every layer that more than one observable compares with the reference step's: a square, or
    factors of twice as many columns as there are samples where that is smaller. At steps with
    noise floors there are more of them, as far as the bound allows.
    """
    nodes = {e.node for e in steps}
    of_reference = Counter(
        need for name in nodes for need in by_name[name].needs() if isinstance(need, Reference)
    )
    total = 0
    for need in (need for need, count in of_reference.items() if count > 1):
        rows, features = _rows_and_features(need.at_step, probe, inputs)
        each = 4 * min(features**2, 4 * rows * features)
        total += each * len(probe.layers.get(need.at_step, ()))
    return min(total, SHARED_BYTES)


def _largest_layer(
    needs: Iterable[Need], probe: Probe, inputs: Mapping[str, Inputs]
) -> tuple[int, int]:
    """Return rows and features of the layer, of all that are held, with most numbers."""
    shapes = [_rows_and_features(need, probe, inputs) for need in set(needs)]
    return max(shapes, key=math.prod, default=(0, 0))


def _rows_and_features(need: Need, probe: Probe, inputs: Mapping[str, Inputs]) -> tuple[int, int]:
    """Return the size of the matrix that a need gives of each layer, (0, 0) if it gives none."""
    held, layers = probe.bytes.get(need, 0), len(probe.layers.get(need, ()))
    if not held or not layers:
        return 0, 0
    rows = len(need.units(inputs[need.at_step.on or next(iter(inputs))]))
    return rows, held // (4 * rows * layers)


def _held(needs: Iterable[Need], probe: Probe) -> int:
    """Return the bytes of the values of needs."""
    return sum(probe.bytes.get(need, 0) for need in set(needs))


def _to_prepare(
    observable: Observable, probe: Probe, inputs: Mapping[str, Inputs], steps: int
) -> int:
    """Return the bytes that an observable's `prepare` holds beside the values of its needs."""
    largest = 0
    for need in observable.needs():
        rows, features = _rows_and_features(need, probe, inputs)
        if rows:
            largest = max(largest, observable.bytes_to_prepare(rows, features, steps))
    return largest
