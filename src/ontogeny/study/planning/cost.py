"""What cells cost: passes, weights read, and bytes held and stored; and whether memory bears it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from ...capture.reading import PassKey
from ...inputs import Inputs
from ...machine import memory_of_this_machine
from ...needs import Need
from ...needs.derived import Reference
from ...observables import Observable
from ..cells import ahead
from ..cells.block_cells import BlockCell
from ..cells.dependencies import SHARED_BYTES
from ..cells.graph import ReferenceCell, StateCell, StepCell, StudyCell
from ..folder.settings import Settings
from .probe import Probe

# All three by benchmarks/memory_model.py.
# Of the libraries, when they have computed something of any size.
_BUFFERS = 100_000_000
_COPIES = 8  # of one layer's sample in float64
_PRODUCTS = 3  # of features by features, in float64


@dataclass
class Costs:
    """What cells cost that are still to be computed.

    Attributes
    ----------
    forwards
        Passes over an input set that are still to be run.
    batches
        Batches of those passes together.
    reference_bytes
        What references that are still to be computed take in the folder.
    dropped_bytes
        What of it goes when the study is finished.
    weight_bytes
        Weights that will be read.
    retained_bytes
        Weight blocks of all steps: what a run with bounded Hub revisions keeps in its folder.
    activation_bytes
        Largest activations held at once: of one checkpoint, or of all that a state is fitted to.
    fitted_bytes
        What of it a state is fitted to, which has to lie in memory; samples may lie in files.
    model_bytes
        The model's weights in memory, 0 where they are only looked at.
    memory_bytes
        About what one worker holds at most beside the libraries, see `held_about`.
    shared_bytes
        What of it are rotations that several observables share.
    device_bytes
        About what of it lies on the device, where that is not the CPU.
    """

    forwards: int = 0
    batches: int = 0
    reference_bytes: int = 0
    dropped_bytes: int = 0
    weight_bytes: int = 0
    retained_bytes: int = 0
    activation_bytes: int = 0
    fitted_bytes: int = 0
    model_bytes: int = 0
    memory_bytes: int = 0
    shared_bytes: int = 0
    device_bytes: int = 0


_STORED = ("reference_bytes", "dropped_bytes", "retained_bytes")
_ADDED = ("forwards", "batches", "weight_bytes", *_STORED)


def together(costs: Sequence[Costs]) -> Costs:
    """Return what is computed, read and stored altogether, and what is held at once at most.

    Examples
    --------
    >>> both = together(
    ...     [Costs(batches=2, memory_bytes=9), Costs(batches=3, memory_bytes=5)]
    ... )
    >>> both.batches, both.memory_bytes
    (5, 9)
    """
    names = [field.name for field in fields(Costs)]
    values = {name: [getattr(cost, name) for cost in costs] for name in names}
    return Costs(
        **{n: sum(values[n]) if n in _ADDED else max(values[n]) for n in names}
    )


@dataclass(frozen=True)
class Prices:
    """What needs and cells of one run cost.

    Parameters
    ----------
    probe
        What is known of the model.
    inputs, by_name, settings
        Input sets, observables by the names of their nodes, and settings of the run.
    steps
        Its steps.
    """

    probe: Probe
    inputs: Mapping[str, Inputs]
    by_name: Mapping[str, Observable]
    settings: Settings
    steps: Sequence[int]

    def of(
        self,
        cells: Sequence[StudyCell],
        others: Sequence[tuple[int, Sequence[Need]]] = (),
        folder: Path | None = None,
    ) -> Costs:
        """Return what cells cost.

        `others` are the needs that states read of further steps, as far as that is known; `folder`
        holds what stands of weight blocks at other steps.
        """
        probe = self.probe
        groups = self._read_together(cells)
        readings: list[Sequence[Need]] = [
            *groups.values(),
            *(needs for _, needs in others),
        ]
        passes = self._passes(groups, others)
        batch_size = self.settings.batch_size
        batches = sum(-(-len(self.inputs[key.on]) // batch_size) for _, key in passes)
        states = [self.by_name[c.node] for c in cells if isinstance(c, StateCell)]
        fitted = max(map(self._to_prepare, states), default=0)
        prepared = self._bytes_of(groups.get("prepared", ())) + fitted
        activations = max(map(self._bytes_of, readings), default=0)
        in_blocks = len(steps_of_blocks(cells, folder, self.steps))
        read = len(readings) + in_blocks
        if self.settings.weights == "streamed":  # all is read again for every batch
            read = max(read, batches)
        costs = Costs(
            forwards=len(passes),
            batches=batches,
            reference_bytes=self._bytes_of(
                {c.need for c in cells if isinstance(c, ReferenceCell)}
            ),
            weight_bytes=probe.stored_bytes * read,
            retained_bytes=sum(probe.block_bytes.values()) * in_blocks,
            activation_bytes=max(activations, prepared),
            fitted_bytes=fitted,
            model_bytes=probe.model_bytes,
        )
        self._hold(
            costs, {cell.node for cell in cells if isinstance(cell, StepCell)}, readings
        )
        return costs

    def _read_together(self, cells: Sequence[StudyCell]) -> dict[Any, list[Need]]:
        """Return the needs of cells by their step; those before all steps as ``"prepared"``."""
        groups: dict[Any, list[Need]] = {}
        for cell in cells:
            needs = cell.needs(self.by_name)
            if needs or isinstance(cell, StepCell | StateCell):
                key = cell.key if cell.observed else "prepared"
                groups.setdefault(key, []).extend(needs)
        return groups

    def _passes(
        self,
        groups: Mapping[Any, Sequence[Need]],
        others: Sequence[tuple[int, Sequence[Need]]],
    ) -> list[tuple[Any, PassKey]]:
        """Return all passes by their step, those that are run twice as well."""
        # What is prepared reads along what the cells of the same step will need.
        reference = self.settings.reference_step
        known = self.probe.passes
        passes = set()
        for step, needs in [*groups.items(), *others]:
            at = reference if step == "prepared" else step
            passes |= {(at, known[need]) for need in needs if need in known}
        first = [(reference, groups.get("prepared", ())), *others]
        return [*passes, *self._again(first, groups)]

    def _again(
        self,
        first: Sequence[tuple[int, Sequence[Need]]],
        groups: Mapping[Any, Sequence[Need]],
    ) -> set[tuple[int, PassKey]]:
        """Return the passes that are run again: what they gave did not fit into the files for it.

        `first` are the needs that are read before the cells, `groups` those of the cells by step.
        """
        passes = self.probe.passes
        room = ahead.LIMIT
        again = set()
        for step, needs in first:
            keys = {passes[need] for need in needs if need in passes}
            along = [
                need for need in {*groups.get(step, ())} if passes.get(need) in keys
            ]
            if (room := room - self._bytes_of(along)) < 0:
                again |= {(step, passes[need]) for need in along}
        return again

    def _hold(
        self, costs: Costs, nodes: set[str], readings: Sequence[Sequence[Need]]
    ) -> None:
        """Note in `costs` what one worker holds at most, at the steps of these nodes or before."""
        needs = chain.from_iterable(self.by_name[name].needs() for name in nodes)
        references = Counter(need for need in needs if isinstance(need, Reference))
        beside = self._bytes_of({need.at_step for need in references})
        costs.shared_bytes = self._shared(
            n.at_step for n, count in references.items() if count > 1
        )
        lengths = [int(texts.lengths.max()) for texts in self.inputs.values()]
        shapes = map(self._shape, set(chain.from_iterable(readings)))
        costs.memory_bytes = costs.shared_bytes + held_about(
            costs.model_bytes,
            self.settings.batch_size * max(lengths, default=0) * self.probe.pass_bytes,
            costs.activation_bytes,
            beside,
            max(shapes, key=lambda shape: (math.prod(shape), shape), default=(0, 0)),
        )
        # The sample of the reference step stays on the host.
        if self.settings.device != "cpu":
            costs.device_bytes = costs.memory_bytes - beside

    def _shared(self, needs: Iterable[Need]) -> int:
        """Return the bytes of rotations that observables share at one step, within the bound.

        Of every layer that more than one observable compares with the reference step's: a square,
        or factors of twice as many columns as there are samples where that is smaller. At steps
        with noise floors there are more of them, as far as the bound allows.
        """
        total = 0
        for need in needs:
            rows, features = self._shape(need)
            rotation = 4 * min(features**2, 4 * rows * features)
            total += rotation * len(self.probe.layers.get(need, ()))
        return min(total, SHARED_BYTES)

    def _shape(self, need: Need) -> tuple[int, int]:
        """Return rows and features of the matrix that a need gives of each layer, or (0, 0)."""
        size = self.probe.bytes.get(need, 0)
        layers = len(self.probe.layers.get(need, ()))
        if not size or not layers:
            return 0, 0
        rows = len(need.units(self.inputs[need.at_step.on or next(iter(self.inputs))]))
        return rows, size // (4 * rows * layers)

    def _bytes_of(self, needs: Iterable[Need]) -> int:
        """Return the bytes of the values of needs."""
        return sum(self.probe.bytes.get(need, 0) for need in set(needs))

    def _to_prepare(self, observable: Observable) -> int:
        """Return the bytes that an observable's `prepare` holds beside the values of its needs."""
        shapes = [
            shape for need in observable.needs() if (shape := self._shape(need))[0]
        ]
        return max(
            (observable.bytes_to_prepare(*size, len(self.steps)) for size in shapes),
            default=0,
        )


def steps_of_blocks(
    cells: Iterable[StudyCell], folder: Path | None, steps: Sequence[int]
) -> list[int]:
    """Return the steps of a run of which the weight blocks among `cells` are still to be read."""
    blocks = [cell for cell in cells if isinstance(cell, BlockCell)]
    read = set().union(*(cell.steps_left(folder, steps) for cell in blocks))
    return [step for step in steps if step in read]


def held_about(
    model_bytes: int,
    pass_bytes: int,
    activation_bytes: int,
    reference_bytes: int,
    largest: tuple[int, int],
) -> int:
    """Return about how many bytes one worker holds at most, beside the libraries.

    The weights; the larger of one forward pass and of float64 work on one layer; the samples of
    this step and of the reference step; and buffers. The guide on costs has what studies took.

    Parameters
    ----------
    model_bytes
        Of the weights.
    pass_bytes
        What one batch takes beside them.
    activation_bytes
        Of the sample of one checkpoint.
    reference_bytes
        Of what is read of the reference step beside it.
    largest
        Rows and features of the sample's largest layer.

    Examples
    --------
    >>> held_about(1000, 300, 50, 50, (10, 2)) - held_about(0, 0, 0, 0, (0, 0))
    2476
    """
    rows, features = largest
    work = 8 * (_COPIES * rows * features + _PRODUCTS * features**2)
    return (
        _BUFFERS
        + model_bytes
        + max(pass_bytes, work)
        + activation_bytes
        + reference_bytes
    )


def too_large_for(device: str, needed_bytes: int, workers: int = 1) -> str | None:
    """Return that workers may not have so many bytes each on a GPU, or None.

    Those of ``"cuda"`` take one GPU after the other. Of a model that accelerate has placed, a part
    alone lies on each.

    Examples
    --------
    >>> too_large_for("cpu", 10**18) is None
    True
    """
    # Workers of a cluster are 0 here, and have GPUs of their own.
    if not (workers and device.startswith("cuda") and torch.cuda.is_available()):
        return None
    gpus = torch.cuda.device_count() if device == "cuda" else 1
    sharing = -(-workers // max(gpus, 1))
    room = torch.cuda.get_device_properties(device).total_memory
    if needed_bytes * sharing <= room:
        return None
    each = f" in each of {sharing} workers" if sharing > 1 else ""
    return (
        f"a study may take about {needed_bytes / 1e9:.3g} GB{each} on {device}, which has "
        f'{room / 1e9:.3g} GB; give the study a smaller batch_size or weights = "streamed", take '
        "fewer workers for each GPU, or let accelerate place the model."
    )


def too_large(
    needed_bytes: int, workers: int = 1, *, about: bool = False
) -> str | None:
    """Return what is wrong with holding so many bytes in each worker, or None.

    Where they are `about` so many, it may yet go well, and the sentence says so.

    Examples
    --------
    >>> too_large(1000) is None
    True
    >>> too_large(10**18)
    'a study takes 1e+09 GB at once, this machine has ... GB; ...'
    """
    room = memory_of_this_machine()
    if room is None or needed_bytes * workers <= room:
        return None
    phrase = ""
    fewer = ""
    if workers > 1:
        phrase = f" in each of {workers} workers, {needed_bytes * workers / 1e9:.3g} GB together"
        fewer = "take fewer workers, or "
    takes = "may take about" if about else "takes"
    return (
        f"a study {takes} {needed_bytes / 1e9:.3g} GB at once{phrase}, "
        f"this machine has {room / 1e9:.3g} GB; {fewer}give the observables max_tokens, fewer "
        'layers or fewer texts, or tokens="mean", or the study a smaller batch_size.'
    )
