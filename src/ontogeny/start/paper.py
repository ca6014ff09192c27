"""What a large study takes, on paper: from headers and configurations, without loading weights.

Bytes are those that a study reads today, and rates are those that were measured of single parts
(`docs/guides/cost.md`), so hours are right to about a factor of two.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from ..capture.objectives import ReadingSettings
from ..capture.reading import sources
from ..errors import ArgumentError, OntogenyError
from ..inputs import Inputs
from ..machine import memory_of_this_machine, one_thread
from ..needs import Activations, Need
from ..needs.derived import Reference
from ..observables import Observable
from ..study import Study
from ..study.folder.controls import observed_of_controls
from ..study.planning.cost import held_about
from ..study.planning.probe import needs_of_steps
from ..trajectory import Checkpoint
from ..trajectory.weights.files import matrix_names
from ..trajectory.weights.placed import unplaced
from ..trajectory.weights.settings import built
from ..trajectory.weights.transformers_models import model_class, quiet

# Of a GPU where there is none to ask.
GPU_MEMORY = 80e9
GPU_RATE = (
    1e14  # operations a second in half precision, of which a pass takes 2 a parameter
)
# Processor seconds, of the guide on costs.
_HASHED = 1 / 0.8e9  # a byte that is hashed and looked through for NaN, by one process
_TURNED = 3.5e-9  # a parameter of a control
_ROTATED = 45.0 / 4096**3  # a layer turned onto the reference, by the cube of its width
_RANKED = 10e-9  # a parameter of a block at a step
# Of a fit to 5,000 rows of width 4,096.
_FITTED = {"ica": 5.6, "svd": 5.6, "pca": 5.5, "k-means": 7.1, "sae": 10.3}
_FIT = 15.0


@dataclass(frozen=True)
class Model:
    """What headers and the configuration say of a model.

    Attributes
    ----------
    stored
        Bytes of one checkpoint.
    itemsize
        Bytes of one parameter.
    width, depth, vocabulary
        Features of the stream, blocks and logits; 0 where the configuration does not say it.
    blocks
        Parameters of its matrices.
    module
        The model without weights, or None where it cannot be built so.
    """

    parameters: int
    stored: int
    itemsize: int
    width: int
    depth: int
    vocabulary: int
    blocks: int
    module: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Model:
        """Return that of a checkpoint; nothing is read but headers and its configuration."""
        settings = checkpoint.configuration() or {}
        if checkpoint.is_downloaded:
            with checkpoint.open() as reader:
                numbers = {n: math.prod(reader.shape(n)) for n in reader.names()}
                sizes = {n: c * reader.dtype(n).itemsize for n, c in numbers.items()}
                blocks = sum(numbers[n] for n in matrix_names(reader))
            parameters = sum(numbers.values())
            stored = sum(sizes.values())
        else:
            assert checkpoint.source is not None
            name = settings.get("dtype") or settings.get("torch_dtype") or "float32"
            stored = checkpoint.source.size()
            dtype = getattr(torch, str(name), torch.float32)
            parameters = blocks = stored // dtype.itemsize
        return cls(
            parameters,
            stored,
            max(1, round(stored / max(parameters, 1))),
            _first(settings, "hidden_size", "n_embd", "d_model"),
            _first(settings, "num_hidden_layers", "n_layer", "num_layers"),
            _first(settings, "vocab_size"),
            blocks,
            _without_weights(checkpoint),
        )


def _first(settings: Mapping[str, Any], *names: str) -> int:
    return next((settings[n] for n in names if isinstance(settings.get(n), int)), 0)


def _without_weights(checkpoint: Checkpoint) -> Any:
    """Return the module on `meta`, or None where its class does not let it be built there.

    One that is in memory is returned as it is.
    """
    template = unplaced(checkpoint.template)
    if isinstance(template, nn.Module):
        return template
    try:
        with quiet(), torch.device("meta"):
            if template is not None:
                return built(template, checkpoint.path).eval()
            assert checkpoint.path is not None
            made = model_class(checkpoint.path)
            config = made.config_class.from_pretrained(checkpoint.path)
            return made._from_config(config).eval()
    except Exception:  # whatever a class raises: passes are then counted by input sets
        return None


@dataclass(frozen=True)
class Wanted:
    """What is studied: a study, or what is left of one.

    Attributes
    ----------
    steps
        Checkpoints.
    controls, control_steps
        Control runs, and at how many steps each is read.
    """

    observables: tuple[Observable, ...]
    steps: int
    controls: int
    control_steps: int

    @classmethod
    def of(cls, study: Study) -> Wanted:
        """Return all that a study asks for."""
        steps = len(study.trajectory)
        count, each = study.control_runs
        return cls(study.observables, steps, count, min(each, steps))

    @property
    def readings(self) -> int:
        """Checkpoints of the run and of its controls that are read.

        A control begins with what the run has read.
        """
        return self.steps + self.controls * max(self.control_steps - 1, 0)


@dataclass(frozen=True)
class Bill:
    """What it takes.

    Attributes
    ----------
    passes, tokens
        Passes over an input set, and the tokens of all of them.
    asked, read
        Bytes of weights that are asked of files, and those of them that come from the disk.
    alone, shared, on_devices
        Seconds by what: of one process that all wait for, of processor cores, and of devices.
    """

    passes: int
    tokens: int
    asked: int
    read: int
    alone: Mapping[str, float]
    shared: Mapping[str, float]
    on_devices: float

    def hours(self, devices: int) -> float:
        """Return the hours of so many devices, each with one core."""
        together = sum(self.shared.values()) + self.on_devices
        return (sum(self.alone.values()) + together / devices) / 3600


@dataclass(frozen=True)
class Paper:
    """A study whose costs are computed without running it.

    Attributes
    ----------
    rate
        Operations a second of a device.
    memory
        Bytes of memory of the machine that it runs on; None where it cannot be known, and all that
        is asked for counts as read.
    """

    study: Study
    model: Model
    rate: float
    memory: float | None

    @classmethod
    def of(cls, study: Study) -> Paper:
        """Return that of a study; the rate is assumed where it will run on a GPU."""
        first = next((c for c in study.trajectory if c.is_downloaded), None)
        model = Model.of(first or study.trajectory[int(study.trajectory.steps[0])])
        return cls(study, model, GPU_RATE, memory_of_this_machine())

    def on_this_machine(self) -> Paper:
        """Return the same at the rate of one core of this machine, as it is measured now."""
        return replace(self, rate=_rate_here())

    def bill(self, wanted: Wanted) -> Bill:
        """Return what it takes."""
        model = self.model
        controlled = wanted.readings - wanted.steps
        per_run = self._passes(wanted.observables)
        beside = self._passes(observed_of_controls(wanted.observables))
        passes = len(per_run) * wanted.steps + len(beside) * controlled
        tokens = sum(per_run) * wanted.steps + sum(beside) * controlled
        in_blocks = [o for o in wanted.observables if o.over_blocks]
        run = model.stored * wanted.steps
        # A control's weights are made of those of two checkpoints.
        asked = run * (2 + bool(in_blocks)) + 2 * model.stored * controlled
        read = run if self.is_kept(wanted) else asked
        hashing = {"hashing and the audit": run * _HASHED}
        alone: dict[str, float] = {}
        shared: dict[str, float] = {}
        if self.is_read_by_step(wanted):
            read = run * (1 + bool(in_blocks))
            shared |= hashing
        else:
            alone |= hashing
        if controlled:
            shared["control weights"] = model.parameters * controlled * _TURNED
        for observable in wanted.observables:
            seconds = self._own(observable, wanted)
            if seconds:
                shared[observable.name] = seconds
        seconds = 2.0 * model.parameters * tokens / self.rate
        return Bill(passes, tokens, asked, read, alone, shared, seconds)

    def is_kept(self, wanted: Wanted) -> bool:
        """Return whether the memory keeps the files of the whole run."""
        return self.model.stored * wanted.steps <= (self.memory or 0) / 2

    def is_read_by_step(self, wanted: Wanted) -> bool:
        """Return whether each checkpoint is read once by all that needs it but matrices."""
        keeps_two = 2 * self.model.stored <= (self.memory or 0) / 2
        return keeps_two and not self.is_kept(wanted)

    def bytes_held(self, wanted: Wanted) -> int:
        """Return about what one process holds, its device's share included."""
        rows, features = self._largest(wanted.observables)
        lengths = [int(texts.lengths.max()) for texts in self.study.inputs.values()]
        widest = max(self.model.width, min(self.model.vocabulary, 65_536))
        batch = self.study.batch_size * max(lengths, default=0) * 3 * 4 * widest
        sample = 4 * rows * features * self._layers(wanted.observables)
        weights = self.model.parameters * self.model.itemsize
        return held_about(weights, batch, sample, sample, (rows, features))

    def bytes_stored(self, wanted: Wanted) -> int:
        """Return what references take in the folder while it runs."""
        rows, features = self._largest(wanted.observables)
        layers = self._layers(wanted.observables)
        return 4 * rows * features * layers * (1 + wanted.controls)

    def _passes(self, observables: Sequence[Observable]) -> list[int]:
        """Return the tokens of every pass over an input set at one checkpoint."""
        inputs = self.study.inputs
        needs = [n for n in needs_of_steps(observables) if n.runs_model]
        passes: dict[object, int] = {}
        for need in needs:
            key = self._key(need)
            on = need.on or next(iter(inputs))
            passes[need if key is None else key] = _tokens(inputs[on])
        return list(passes.values())

    def _key(self, need: Need) -> object:
        """Return what passes that are shared have in common; None of one of its own."""
        on = need.on or next(iter(self.study.inputs))
        if self.model.module is None:
            return on
        settings = ReadingSettings()
        of_needs = sources(self.model.module, [need], self.study.inputs, settings)
        try:
            return need.pass_key(of_needs[need])
        except (OntogenyError, RuntimeError):
            # What only weights can tell is told when the study is planned.
            return of_needs[need].pass_key()

    def _own(self, observable: Observable, wanted: Wanted) -> float:
        """Return the processor seconds of one observable beside the passes."""
        if observable.over_blocks:
            return self.model.blocks * wanted.steps * _RANKED
        rows, features = self._largest([observable])
        if not rows:
            return 0.0
        layers = self._layers([observable])
        controlled = observable in observed_of_controls(wanted.observables)
        readings = wanted.readings if controlled else wanted.steps
        seconds = 0.0
        if any(isinstance(n, Reference) for n in observable.needs()):
            seconds += _ROTATED * min(features, rows) ** 2 * features
        if (extractor := getattr(observable, "extractor", None)) is not None:
            of_kind = _FITTED.get(str(extractor), _FIT)
            seconds += of_kind * rows * features / (5000 * 4096)
        return seconds * layers * readings

    def _activations(self, observables: Sequence[Observable]) -> list[Activations]:
        needs = needs_of_steps(observables)
        return [need for need in needs if isinstance(need, Activations)]

    def _largest(self, observables: Sequence[Observable]) -> tuple[int, int]:
        """Return rows and features of the largest sample of a layer."""
        inputs = self.study.inputs
        rows = [
            len(need.units(inputs[need.on or next(iter(inputs))]))
            for need in self._activations(observables)
        ]
        return (max(rows), self.model.width) if rows else (0, 0)

    def _layers(self, observables: Sequence[Observable]) -> int:
        """Return how many layers are read; of a model that cannot be built, its depth."""
        module = self.model.module
        if module is None:
            return max(self.model.depth, 1) if self._activations(observables) else 0
        found: set[str] = set()
        for need in self._activations(observables):
            source = sources(module, [need], self.study.inputs, ReadingSettings())[need]
            try:
                found.update(need.labels(source))
            except RuntimeError:  # only a pass would tell
                return max(self.model.depth, 1)
        return len(found)


def _tokens(inputs: Inputs) -> int:
    return int(inputs.mask.sum())


def _rate_here() -> float:
    """Return the operations a second of one core in float32, of a product that takes 20 ms."""
    one = torch.ones(512, 512)
    with one_thread():
        one @ one  # the first one takes longer
        begin = time.perf_counter()
        for _ in range(8):
            one @ one
        return 8 * 2 * 512**3 / (time.perf_counter() - begin)


def check_fits(held: int, model: Model, devices: int, memory: float) -> str:
    """Return how a model lies on devices, in words; empty where each of them holds it.

    Raises
    ------
    ArgumentError
        If all of them with this machine's memory do not hold it; the message says by how much.
    """
    if held <= memory:
        return ""
    here = memory_of_this_machine()
    weights = model.parameters * model.itemsize
    room = devices * memory + (here or 0)
    if weights > room and here is None:
        return (
            f"the devices are {(weights - room) / 1e9:.0f} GB too small together, and the memory of "
            "this machine, which may hold the rest, cannot be known"
        )
    if weights > room:
        raise ArgumentError(
            f"the model fits nowhere: its weights take {weights / 1e9:.0f} GB, {devices} devices of "
            f"{memory / 1e9:.0f} GB with this machine's memory hold {room / 1e9:.0f} GB, "
            f"{(weights - room) / 1e9:.0f} GB too little; take more devices, or "
            'weights = "streamed".'
        )
    over = math.ceil(held / memory)
    where = f"over {over}" if over <= devices else f"on {devices} and in memory"
    return (
        f"one device is {(held - memory) / 1e9:.0f} GB too small: let accelerate place the model "
        f"{where} (docs/guides/gpu.md)"
    )
