"""The cells of a study, from its observables, checkpoints, inputs and settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any

from ... import own_code
from ...errors import ArgumentError, CheckpointError, StoreError
from ...inputs import Inputs
from ...needs import Need
from ...needs.derived import Reference
from ...observables import Observable
from ...store import plain, read_header
from ...trajectory import Checkpoint, Trajectory
from ..cells.block_cells import BlockCell
from ..cells.cache import Digest, DigestCache, combine
from ..cells.graph import (
    LayerCell,
    ReferenceCell,
    StateCell,
    StepCell,
    StudyCell,
    SummaryCell,
)
from ..cells.models import own_needs
from ..cells.readings import state_node, vocabulary_size
from ..folder.code import code_of_cell
from ..folder.layout import (
    HERE,
    cell_path,
    reference_path,
    run_folder,
    state_path,
    summary_path,
)
from ..folder.settings import Settings
from .probe import Probe


@dataclass(eq=False)
class Graph:
    """The cells of one run of a study, each with what its fingerprint holds.

    `name` is that of a control run, and empty for the run that is studied.
    """

    trajectory: Trajectory
    inputs: Mapping[str, Inputs]
    observables: Sequence[Observable]
    settings: Settings
    probe: Probe
    digests: DigestCache
    name: str = ""

    def __post_init__(self) -> None:
        self.by_name = {o.name: o for o in self.observables}
        self.steps = tuple(int(s) for s in self.trajectory.steps)
        self._models: dict[int, str] = {}
        self._tensors: dict[int, Callable[[Iterable[str] | None], Digest]] = {}
        self._observed_cells: dict[str, tuple[StudyCell, ...]] = {}

    def cells(self) -> list[StudyCell]:
        """Return the cells of observables and what they need, each after those that it reads."""
        series_last = sorted(self.observables, key=lambda o: o.source is not None)
        return list(chain(self._prepared.values(), *map(self.observed, series_last)))

    @cached_property
    def _prepared(self) -> dict[Path, StudyCell]:
        """References and states by their places."""
        states = (self._state(o) for o in self.observables if o.prepares)
        return {cell.place: cell for cell in (*self._references(), *states)}

    def observed(self, observable: Observable) -> tuple[StudyCell, ...]:
        """Return the cells of one observable."""
        name = observable.name
        if name not in self._observed_cells:
            make = self._observed if observable.source is None else self._layers
            self._observed_cells[name] = tuple(make(observable))
        return self._observed_cells[name]

    def summaries(self, controls: Sequence[Graph] = ()) -> list[list[SummaryCell]]:
        """Return the summaries in generations: each reads those of the generations before.

        They read the same node of `controls` as well.
        """
        edges = {o.name: o.depends_on for o in self.observables}
        return [
            [self._summary(self.by_name[n], controls) for n in part]
            for part in generations(edges)
        ]

    def keys(self, observable: Observable) -> tuple[int | str, ...]:
        """Return the steps, blocks or layers that an observable has cells for.

        One that needs nothing has none: it follows from other nodes alone.

        Raises
        ------
        ArgumentError
            If an observable of series asks for those of one that reads no layers.
        """
        if not observable.needs():
            return ()
        if observable.over_blocks:
            return self.probe.blocks[observable.name]
        if observable.source is None:
            return self.steps
        layers = self.probe.layers_of(self.by_name[observable.source.node])
        if not layers:
            raise ArgumentError(
                f"{observable.name} needs an observable of activations; "
                f"{observable.source.node!r} has no layers."
            )
        return layers

    def _references(self) -> Iterator[ReferenceCell]:
        step = self.settings.reference_step
        needs = chain.from_iterable(o.needs() for o in self.observables)
        for need in dict.fromkeys(n for n in needs if isinstance(n, Reference)):
            place = reference_path(HERE, need)
            read = need.need
            label = self.label(f"{type(read).__name__} of reference step {step}")
            components = self.reading(step, read)
            yield ReferenceCell("reference", step, place, label, components, need=read)

    def reading(self, step: int, need: Need) -> dict[str, Any]:
        """Return what the value of a need at one checkpoint depends on."""
        return {
            "need": repr(need),
            **self._at_step(step, [need], [need]),
            **code_of_cell("ReferenceCell", None, [need], self.probe.model_class),
        }

    def _state(self, observable: Observable) -> StateCell:
        name = observable.name
        step = self.settings.reference_step
        needs = [need for need in observable.needs() if need.over == "step"]
        components = _for_cells(observable) | self._at_step(step, needs, needs)
        components |= self._code("StateCell", observable)
        components["reference_step"] = step
        label = self.label(f"the state of {name}")
        return StateCell(name, "state", state_path(HERE, name), label, components)

    def _observed(self, observable: Observable) -> Iterator[StudyCell]:
        name = observable.name
        references = [n for n in observable.needs() if isinstance(n, Reference)]
        reads = [reference_path(HERE, need) for need in references]
        if state := state_node(observable):
            reads.append(state_path(HERE, state))
        sources = tuple(self._prepared[place] for place in reads)
        kind = "BlockCell" if observable.over_blocks else "StepCell"
        common = _for_cells(observable) | self._code(kind, observable)
        common["threads"] = self.settings.threads
        if reads:
            common["reference_step"] = self.settings.reference_step
        for key in self.keys(observable):
            place = cell_path(HERE, name, key)
            if observable.over_blocks:
                block = self.probe.weight_blocks[str(key)]
                components = common | self._of_block(block.tensor)
                start = (name, key, place, self.label(f"{name} of {key}"), components)
                yield BlockCell(
                    *start,
                    tuple(reads),
                    sources,
                    block=block,
                    grows=observable.from_first,
                    device=self.settings.device,
                )
            else:
                components = common | self._of_step(observable, int(key))
                start = (
                    name,
                    key,
                    place,
                    self.label(f"{name} at step {key}"),
                    components,
                )
                yield StepCell(*start, tuple(reads), sources)

    def _code(self, kind: str, observable: Observable) -> dict[str, Any]:
        """Return which code and libraries a kind of an observable's cells runs."""
        return code_of_cell(
            kind, observable, observable.needs(), self.probe.model_class
        )

    def label(self, text: str) -> str:
        """Return what messages call a part of this run: of a control run with its name."""
        return f"{self.name}: {text}" if self.name else text

    def _of_block(self, tensor: str) -> dict[str, Any]:
        return {
            "weights": {
                str(c.step): self._digest(c, [tensor]) for c in self.trajectory
            },
            "vocabulary": self._vocabulary,
            "model": self._model(self.steps[0]),
        }

    def _of_step(self, observable: Observable, step: int) -> dict[str, Any]:
        needs = own_needs(observable)
        components = self._at_step(step, needs, observable.needs())
        # Which loss it is may follow from the model's class, or from another package.
        losses = [repr(need) for need in needs if need.exclusive and need.reads_inputs]
        if losses:
            components["losses"] = losses
        if observable.uses_noise:
            components["noise"] = step in self.settings.noise_steps
        return components

    def _at_step(
        self, step: int, weights: Sequence[Need], inputs: Sequence[Need]
    ) -> dict[str, Any]:
        """Return what needs at one checkpoint depend on."""
        return {
            "weights": self._weights(step, weights),
            "inputs": self._inputs(inputs),
            "reading": {
                **self.settings.reading(),
                "model": self._model(step),
                **self._own_code(step),
            },
        }

    def _own_code(self, step: int) -> dict[str, Any]:
        """Return what the file holds that builds the model, where it is one of the user's."""
        content = own_code.content_of(self.trajectory[step].template)
        return {} if content is None else {"code": content}

    def _layers(self, observable: Observable) -> Iterator[StudyCell]:
        assert observable.source is not None
        name = observable.name
        source = observable.source
        components = (
            _for_cells(observable)
            | self._code("LayerCell", observable)
            | self._derived()
        )
        sources = self.observed(self.by_name[source.node])
        reads = tuple(cell.place for cell in sources)
        for key in self.keys(observable):
            start = (
                name,
                key,
                cell_path(HERE, name, key),
                f"{name} of {key}",
                components,
            )
            yield LayerCell(*start, reads, sources, steps=self.steps)

    def _summary(
        self, observable: Observable, controls: Sequence[Graph]
    ) -> SummaryCell:
        name = observable.name
        cells = self.observed(observable)
        components = {
            **_observable(observable),
            **self._code("SummaryCell", observable),
            **self._derived(),
        }
        beside = [c.name for c in controls if name in c.by_name]
        is_kept = observable.state_variables and observable.prepares
        reads = (
            *(cell.place for cell in cells),
            *(summary_path(HERE, node) for node in observable.depends_on),
            *(summary_path(run_folder(HERE, run), name) for run in beside),
            *([state_path(HERE, name)] if is_kept else []),
        )
        label = self.label(f"the summary of {name}")
        start = (name, "summary", summary_path(HERE, name), label, components)
        return SummaryCell(*start, reads, cells, cells=cells, controls=tuple(beside))

    def _derived(self) -> dict[str, Any]:
        """Return the settings that what is computed from other cells depends on."""
        return {
            "threads": self.settings.threads,
            "reference_step": self.settings.reference_step,
        }

    def _weights(self, step: int, needs: Sequence[Need]) -> Digest:
        # None: of one need it is not known, so all weights count.
        names: set[str] | None = set()
        for need in needs:
            stored_names = self.probe.reads.get(need.at_step)
            names = (
                None if names is None or stored_names is None else names | stored_names
            )
        return self._digest(self.trajectory[step], names)

    def _inputs(self, needs: Sequence[Need]) -> dict[str, str]:
        first = next(iter(self.inputs))
        used = [need.at_step.on or first for need in needs if need.at_step.reads_inputs]
        return {name: self.inputs[name].fingerprint for name in used}

    def _model(self, step: int) -> str:
        """Return a digest of what a checkpoint's model is, beside its weights."""
        if step not in self._models:
            checkpoint = self.trajectory[step]
            settings: dict[str, Any] = {}
            try:
                configuration = checkpoint.configuration()
                # The files of a commit are known as a whole.
                if checkpoint.source is None:
                    settings = checkpoint.settings()
            except CheckpointError as error:
                configuration = {"unreadable": str(error)}
            content = {
                "class": self.probe.model_class,
                "attention": self.probe.attention,
            }
            content["configuration"] = json.dumps(
                configuration, sort_keys=True, default=str
            )
            if settings:
                content["settings"] = json.dumps(settings, sort_keys=True)
            self._models[step] = combine(content)
        return self._models[step]

    def _digest(self, checkpoint: Checkpoint, names: Iterable[str] | None) -> Digest:
        # A model has hundreds of matrices: of each checkpoint the digests are looked up once.
        if checkpoint.step not in self._tensors:
            try:
                self._tensors[checkpoint.step] = self.digests.by_tensor(checkpoint)
            except CheckpointError as error:
                unreadable = f"unreadable: {error}"
                self._tensors[checkpoint.step] = lambda names: unreadable
        return self._tensors[checkpoint.step](names)

    @cached_property
    def _vocabulary(self) -> int | None:
        return vocabulary_size(self.trajectory)


def has_begun(folder: Path, observable: Observable) -> bool:
    """Return whether a folder has a finished cell of an observable with these arguments.

    A failed one does not count: its code may have been edited, which arguments do not show.
    """
    expected = plain(_for_cells(observable)["observable"])
    for path in cell_path(folder, observable.name, "any").parent.glob("*.safetensors"):
        try:
            header = read_header(path)
        except StoreError:  # it is damaged, and found to be so when it is checked
            continue
        if (
            header["status"] == "done"
            and header["fingerprint"].get("observable") == expected
        ):
            return True
    return False


def generations(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the nodes of a graph in generations: each depends on the generations before.

    Raises
    ------
    graphlib.CycleError
        If a node depends on itself, directly or through others.

    Examples
    --------
    >>> generations({"fits": ["loss"], "loss": []})
    [['loss'], ['fits']]
    """
    sorter = TopologicalSorter(edges)
    sorter.prepare()
    generations_ready = []
    while sorter.is_active():
        ready = list(sorter.get_ready())
        generations_ready.append(ready)
        sorter.done(*ready)
    return generations_ready


def _for_cells(observable: Observable) -> dict[str, Any]:
    """Return the fingerprint of an observable without arguments that its summary alone reads."""
    return _observable(observable, getattr(observable, "summary_only", ()))


def _observable(observable: Observable, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fingerprint of an observable, of its arguments all but those named."""
    arguments = {k: v for k, v in observable.arguments().items() if k not in without}
    fields = {"kind": observable.kind, "arguments": plain(arguments)}
    # What they hold, whatever their names: without any, fingerprints are what they were.
    if files := {str(path): _content(Path(path)) for path in observable.files_read()}:
        fields["files"] = files
    return {"observable": fields}


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:  # said by the observable, when it reads the file
        return f"unreadable: {type(error).__name__}"
