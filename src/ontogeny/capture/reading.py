"""Reading a model for several needs at once: one forward pass per batch and pass key.

A key is (input set, corruption, attention implementation, whether the vocabulary map is watched).
Needs with the same key share their passes, others get their own, so that a need's numbers are the
same to the last bit whatever else is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from torch import nn

from ..errors import ArgumentError
from ..inputs import Inputs
from ..needs import Gradients, Need
from ..needs.base import MASK_FRACTION
from .activation import ActivationCollector
from .attention.entropy import AttentionCollector
from .collect import Collector, feed
from .forward import beginning, check_fits
from .gradients import GradientReading, gradients
from .implementations import attention_maps, gives_maps_beside
from .layer_readout import readouts, why_no_readout
from .layers import list_layers, match_attention, match_layers
from .logits import head_path
from .loss import LossCollector, resolve_objective
from .objectives import ReadingSettings, input_set
from .predicted import Listener, PredictionCollector, Reduced
from .predictor import Predictor, check_mask_token
from .read_alone import check_read
from .sites import check_heads_whole, module_of
from .trace import Trace
from .trial.first_look import look_at
from .vocabulary_map import Readout


@dataclass(frozen=True)
class PassKey:
    """What needs must have in common to share a forward pass.

    With `maps` the pass gives attention maps; those of one key agree in `eager`, whether attention
    is computed explicitly for them.
    """

    on: str
    corruption: tuple[float, int] | None = None
    eager: bool = False
    watches_head: bool = False
    maps: bool = field(default=False, compare=False)


@dataclass(frozen=True, eq=False)
class ModelSource:
    """A model with one input set, as needs read it: what the methods of a `Need` are given.

    Parameters
    ----------
    model
        The module, in evaluation mode. It is to be left as it is.
    on
        Name of the input set.
    inputs
        The input set, padded the way that the model takes it.
    settings
        Batch size, device and positions.
    key
        The forward pass that collectors are made for.
    """

    model: nn.Module
    on: str
    inputs: Inputs
    settings: ReadingSettings
    key: PassKey | None = None

    def layers(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """Return the labels of the modules that patterns match."""
        return tuple(match_layers(self.model, patterns, self.inputs))

    def pass_key(
        self,
        corruption: tuple[float, int] | None = None,
        eager: bool = False,
        layers: Sequence[str] = (),
    ) -> PassKey:
        """Return the key of a forward pass that is stopped after `layers`.

        `corruption` is the share of masked tokens and its seed; with `eager` the pass gives
        attention maps, by the eager implementation where they cannot be had beside another.
        """
        head = head_path(self.model)
        paths = [module_of(label) for label in layers]
        watches = head is not None and any(
            f"{head}.".startswith(f"{p}.") for p in paths
        )
        return PassKey(
            self.on, corruption, eager and not self._maps_beside, watches, eager
        )

    @cached_property
    def _maps_beside(self) -> bool:
        return gives_maps_beside(self.model)

    def masked(self, objective: str) -> bool:
        """Return whether the model predicts masked tokens; ``"auto"`` asks the model's class."""
        return resolve_objective(self.model, objective) == "masked"

    def activation_collector(
        self,
        layers: Sequence[str],
        tokens: str,
        max_tokens: int | None,
        random_state: int,
    ) -> Collector:
        """Return what takes activations out of a pass."""
        sample = self.inputs.sample(tokens, max_tokens, random_state, MASK_FRACTION)
        return ActivationCollector(layers, self.inputs, sample, self.settings.device)

    def attention_collector(
        self,
        layers: str | Sequence[str],
        tokens: str,
        top: Sequence[int],
        shown: int = 0,
    ) -> Collector:
        """Return what takes reduced attention maps out of a pass."""
        paths = match_attention(self.model, layers)
        check_heads_whole(self.model, paths)
        return AttentionCollector(paths, self.inputs, tokens, top, shown)

    @cached_property
    def loss_collector(self) -> LossCollector:
        """What takes the loss of every text out of a pass: one for all needs of it."""
        return LossCollector(
            self.model, self.inputs, self.corrupted[1], True, self.listeners
        )

    def reduced_collector(self, function: Any) -> Collector:
        """Return what listens to all predictions of a pass, by a function of the texts."""
        masked = self.corrupted[1] is not None
        reduced = Reduced(
            type(self.model).__name__, function.reduction(self.inputs, masked)
        )
        self.listeners.append(reduced)
        return reduced

    @cached_property
    def listeners(self) -> list[Listener]:
        """What listens to the predictions of the pass."""
        return []

    def feeders(self, collectors: Iterable[Collector]) -> list[Collector]:
        """Return collectors, each once, with one that hands predictions on to those who listen."""
        distinct = list(dict.fromkeys(collectors))
        if self.listeners and not any(isinstance(c, LossCollector) for c in distinct):
            model = self.model
            positions = self.corrupted[1]
            distinct.append(
                PredictionCollector(model, self.inputs, positions, self.listeners)
            )
        return distinct

    @cached_property
    def corrupted(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Ids with masked tokens and where they are, if the pass is over masked texts."""
        corruption = None if self.key is None else self.key.corruption
        return self.inputs.corrupt(*corruption) if corruption else (None, None)

    def gradients(self, need: Gradients) -> GradientReading:
        """Return the model with a loss."""
        return gradients(self.model, need, {self.on: self.inputs}, self.settings)

    def predictor(self, objective: str) -> Predictor:
        """Return the model as something to be asked what it predicts.

        Raises
        ------
        ArgumentError
            If its objective is unknown, or it predicts masked tokens and there is no mask token.
        """
        predictor = Predictor(self.model, objective, self.settings)
        if predictor.masked:
            check_mask_token(self.inputs)
        return predictor

    def readouts(self, patterns: Sequence[str]) -> dict[str, Readout]:
        """Return the maps to the vocabulary of the layers that have one."""
        there = [
            path
            for path in self.layers(patterns)
            if not why_no_readout(self.model, path)
        ]
        size = self.inputs.vocab_size
        return (
            readouts(self.model, there, inputs=self.inputs, vocabulary=size)
            if there
            else {}
        )

    def unembedding_size(self) -> int:
        """Return the number of entries of the vocabulary map; 0 if there is none."""
        path = head_path(self.model)
        return (
            0
            if path is None
            else self.model.get_submodule(path).get_parameter("weight").numel()
        )

    def tensors_read(self, layers: Sequence[str] | None = None) -> set[str]:
        """Return the stored tensors that a pass up to `layers` reads; None: a whole pass."""
        end = self.trace.end if layers is None else self.trace.end_of(layers)
        return self.trace.names(end)

    def tensors_read_for_attention(self, layers: str | Sequence[str]) -> set[str]:
        """Return the stored tensors that a pass up to the attention of `layers` reads."""
        return self.trace.names(self.trace.end_of_maps(layers))

    @cached_property
    def trace(self) -> Trace:
        """When modules run on some tokens, and the shapes that they give."""
        return Trace(self.model, self.inputs, self.settings.positions == "mask")

    def width(self, layers: Sequence[str]) -> int:
        """Return the number of features that layers give together for one token."""
        labels = self.layers(layers)
        there = self.trace.shapes
        if there.keys() >= {*labels}:
            return sum(there[label][-1] for label in labels)
        # Inputs, parts and calls.
        infos = list_layers(self.model, labels, beginning(self.inputs))
        return sum(info.shape[-1] for info in infos if info.shape)


def read(
    model: nn.Module,
    needs: Iterable[Need],
    inputs: Mapping[str, Inputs],
    settings: ReadingSettings | None = None,
    along: Iterable[Need] = (),
) -> dict[Need, Any]:
    """Read `model` for all `needs`, with one forward pass per batch and pass key.

    Parameters
    ----------
    model
        Any module; its modes, gradients and hooks, and the random state, are left as they are.
    needs
        Any `ontogeny.needs.Need` of one checkpoint. `Activations` give
        ``{path: (n, m) float32 tensor}``, `Attention` a Dataset ``entropy(layer, head, text)``,
        ``uniform(text)``, ``tokens(text)``, `Losses` a Dataset ``loss(text)``, ``tokens(text)``.
    inputs
        Input sets by name; a need with ``on=None`` reads the first.
    settings
        Batch size, device and positions.
    along
        Further needs, which are read where they share a pass with one of `needs`, or share none.

    Raises
    ------
    ArgumentError
        If an input set is unknown, or a module's output is not what a need can read.
    LayerMatchError
        If a layer pattern matches nothing.
    NonFiniteError
        If NaN or infinity is read.

    Examples
    --------
    >>> import torch
    >>> from ontogeny.needs import Activations, Losses
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9))
    >>> inputs = {"text": Inputs.from_tokens([[1, 2, 3], [4, 5]])}
    >>> need = Activations("1", tokens="mean")
    >>> values = read(model, [need, Losses(objective="causal")], inputs)
    >>> values[need]["1"].shape
    torch.Size([2, 4])
    """
    asked = list(dict.fromkeys(needs))
    by_need = sources(model, dict.fromkeys([*asked, *along]), inputs, settings)
    for source in {id(s): s for need, s in by_need.items() if need.runs_model}.values():
        look_at(model, source.inputs)
    every = pass_keys(by_need)
    run_anyway = {None, *(every[need] for need in asked)}
    keys = {need: key for need, key in every.items() if key in run_anyway}
    groups: dict[PassKey, dict[Need, PassKey]] = {}
    for need, key in keys.items():
        if key is not None:
            groups.setdefault(key, {})[need] = key
    values: dict[Need, Any] = {}
    for key, group in groups.items():
        key = replace(key, maps=any(k.maps for k in group.values()))
        values |= _read_together(
            replace(by_need[next(iter(group))], key=key), list(group)
        )
    values |= {
        need: need.read(by_need[need]) for need, key in keys.items() if key is None
    }
    return {need: values[need] for need in keys}


def sources(
    model: nn.Module,
    needs: Iterable[Need],
    inputs: Mapping[str, Inputs],
    settings: ReadingSettings | None = None,
) -> dict[Need, ModelSource]:
    """Return the source of each need; needs of the same input set have the same one."""
    settings = settings or ReadingSettings()
    by_set: dict[str, ModelSource] = {}
    by_need: dict[Need, ModelSource] = {}
    for need in needs:
        on = input_set(need, inputs)
        if on not in by_set:
            laid_out = settings.layout(Inputs.coerce(inputs[on]))
            by_set[on] = ModelSource(model, on, laid_out, settings)
        by_need[need] = by_set[on]
    return by_need


def pass_keys(by_need: Mapping[Need, ModelSource]) -> dict[Need, PassKey | None]:
    """Return the key of each need's forward pass; None where it shares none.

    Raises
    ------
    ArgumentError
        If a need gives a key that its source did not make.
    """
    keys: dict[Need, PassKey | None] = {}
    for need, source in by_need.items():
        key = need.pass_key(source)
        if key is not None and not isinstance(key, PassKey):
            raise ArgumentError(
                f"pass_key of {type(need).__name__} must give what source.pass_key(...) makes, or "
                f"None; got {key!r}."
            )
        keys[need] = key
    return keys


def modules_read(
    model: nn.Module,
    needs: Iterable[Need],
    inputs: Mapping[str, Inputs],
    settings: ReadingSettings | None = None,
) -> dict[Need, set[str]]:
    """Return the names of the stored parameters and buffers that each need depends on.

    They belong to the modules that are called before the pass for this need is stopped, found by
    one forward pass of one text (see `ontogeny.capture.trace`).

    Examples
    --------
    >>> from ontogeny.needs import Activations
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9))
    >>> need = Activations("1")
    >>> sorted(
    ...     modules_read(model, [need], {"text": Inputs.from_tokens([[1, 2]])})[need]
    ... )
    ['0.weight', '1.bias', '1.weight']
    """
    names: dict[Need, set[str]] = {}
    for need, source in sources(model, needs, inputs, settings).items():
        tensors = need.tensors(source)
        names[need] = (
            set(model.state_dict(keep_vars=True)) if tensors is None else tensors
        )
    return names


def _read_together(source: ModelSource, needs: Sequence[Need]) -> dict[Need, Any]:
    """Return the values of needs that share their forward passes."""
    assert source.key is not None
    model = source.model
    inputs = source.inputs
    settings = source.settings
    ids, _ = source.corrupted
    check_fits(model, inputs, ids)
    collectors: dict[Need, Collector] = {need: need.collector(source) for need in needs}
    with attention_maps(model) if source.key.maps else nullcontext():
        feed(
            model,
            inputs.batches(settings.batch_size, ids),
            source.feeders(collectors.values()),
            position_ids=settings.positions == "mask",
        )
    values = {need: collector.result() for need, collector in collectors.items()}
    losses = next(
        (c for c in collectors.values() if isinstance(c, LossCollector)), None
    )
    if losses is not None and losses.objective == "causal":
        loss = losses.result().loss.values
        check_read(
            model, inputs, loss, settings.batch_size, settings.positions == "mask"
        )
    return values
