"""What an observable reads of one checkpoint, as values that can be compared and merged.

Equal needs are read once. Needs with the same pass key share their forward passes, others get
passes of their own, so that adding an observable never changes another one's numbers (decision 2).
A need says itself how it is read, in terms of its source: a model with an input set, the
`ModelSource` of `ontogeny.capture`. This module therefore imports no model code, and another
package adds a need by subclassing `Need`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .errors import ArgumentError, check_choice, check_whole

MASK_FRACTION = 0.15
GRANULARITIES = ("all", "mean", "last", "cls", "masked")


Source: TypeAlias = Any
"""A model with the input set of a need: an `ontogeny.capture.ModelSource`."""


class Need:
    """What is read of one checkpoint: a frozen dataclass, so that equal needs are read once.

    A subclass gives `read`, or `pass_key` and `collector` if it shares forward passes with other
    needs. The other methods have defaults that are safe: all weights count as read, and nothing
    is priced.
    """

    on: str | None = None
    """Name of the input set that is read; None means the study's first."""
    reads_inputs: ClassVar[bool] = True
    """Whether its value depends on the input set."""
    runs_model: ClassVar[bool] = True
    """Whether the model is run on the input set, so that padding must not matter."""
    exclusive: ClassVar[bool] = False
    """Whether its value is the module itself: it is put back after each observable."""
    over: ClassVar[str] = "step"
    """What observables that need it are mapped over: ``"step"``, ``"block"`` or ``"layer"``."""

    @property
    def at_step(self) -> Need:
        """The need that is read of a checkpoint: this one, unless it is a `Reference`."""
        return self

    def check(self, source: Source) -> None:
        """Refuse a model or inputs that it cannot read; called once before a study begins."""

    def labels(self, source: Source) -> tuple[str, ...]:
        """Return the labels of the layers that its value holds; none if it has no layers."""
        return ()

    def pass_key(self, source: Source) -> Hashable | None:
        """Return what needs must have in common to share forward passes; None to share none."""
        return None

    def collector(self, source: Source) -> Any:
        """Return the `ontogeny.capture.collect.Collector` that is fed by the shared passes."""
        raise NotImplementedError(f"{type(self).__name__} has a pass key and no collector.")

    def read(self, source: Source) -> Any:
        """Return the value of a need that shares no forward passes.

        Raises
        ------
        ArgumentError
            If it is not read of one checkpoint.
        """
        raise ArgumentError(f"{type(self).__name__} is not read of one checkpoint.")

    def tensors(self, source: Source) -> set[str] | None:
        """Return the names of the stored tensors that its value depends on; None means all."""
        return None

    def size(self, source: Source) -> int:
        """Return the bytes that its value holds in memory."""
        return 0

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit that each row of the value belongs to, see `Inputs.groups`.

        A unit is a text, or all texts that repeat or share a document; it has the number of its
        first text.

        Raises
        ------
        ArgumentError
            If the value has no rows that belong to texts.
        """
        raise ArgumentError(f"the rows of {type(self).__name__} do not belong to texts.")


@dataclass(frozen=True)
class Activations(Need):
    """Outputs of modules on an input set: ``{module path: (n, m) float32 tensor}``.

    Parameters
    ----------
    layers
        Glob or globs over module paths, such as ``"model.layers.*.mlp"``, or short names such as
        ``"mlp"`` and ``"layers[0:12:3].attn"`` in the families that `ontogeny.capture` knows.
    on
        Name of the input set; ``None`` means the study's first.
    tokens
        Which positions: ``"all"`` (every ordinary token), ``"mean"`` (one mean per text),
        ``"last"`` and ``"cls"`` (last and first unpadded token of each text), ``"masked"``
        (positions replaced by the mask token; the model then sees the corrupted text).
    max_tokens
        Rows kept, drawn once with `random_state`, the same at every checkpoint; ``None`` keeps all.
    """

    layers: str | tuple[str, ...]
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.layers, list):
            object.__setattr__(self, "layers", tuple(self.layers))
        check_choice("tokens", self.tokens, GRANULARITIES)
        if self.max_tokens is not None and self.max_tokens < 2:
            raise ArgumentError(f"max_tokens must be at least 2 or None; got {self.max_tokens}.")

    @property
    def patterns(self) -> tuple[str, ...]:
        """The layer globs as a tuple."""
        return (self.layers,) if isinstance(self.layers, str) else self.layers

    def labels(self, source: Source) -> tuple[str, ...]:
        """Return the labels of the modules that match."""
        return source.layers(self.patterns)

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of a pass up to the deepest layer."""
        corruption = (MASK_FRACTION, self.random_state) if self.tokens == "masked" else None
        return source.pass_key(corruption, layers=self.labels(source))

    def collector(self, source: Source) -> Any:
        """Return what gathers the sampled rows."""
        labels = self.labels(source)
        return source.activation_collector(labels, self.tokens, self.max_tokens, self.random_state)

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of the modules up to the deepest layer."""
        return source.tensors_read(self.labels(source))

    def size(self, source: Source) -> int:
        """Return the bytes of the rows in float32."""
        return 4 * len(self.units(source.inputs)) * source.width(self.patterns)

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit of every row that is kept: the same rows at every checkpoint."""
        text = inputs.sample(self.tokens, self.max_tokens, self.random_state).text
        return np.asarray(inputs.groups[text])


@dataclass(frozen=True)
class Attention(Need):
    """Attention maps, reduced inside the hook to ``entropy(layer, head, text)``, ``uniform(text)``.

    With `top`, also ``top_mass(k, layer, head, text)``: the mean share of attention that each
    query gives to its k strongest keys. The model runs in its eager attention implementation for
    this reading.

    Parameters
    ----------
    layers
        Glob over attention modules; ``"*"`` takes all that return attention weights.
    on
        Name of the input set; ``None`` means the study's first.
    statistic
        ``"entropy"``.
    tokens
        Which queries: ``"all"`` (ordinary tokens) or ``"last"`` (the last token of each text,
        where an answer is read).
    top
        Numbers k of strongest keys.
    shown
        Of how many texts the entropy of every ordinary token is given too, mean over heads:
        ``shown_entropy(layer, shown_text, shown_place)`` of an `ontogeny.inputs.ShownTexts`.
    """

    layers: str | tuple[str, ...] = "*"
    on: str | None = None
    statistic: str = "entropy"
    tokens: str = "all"
    top: tuple[int, ...] = ()
    shown: int = 0

    def __post_init__(self) -> None:
        for name in ("layers", "top"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        check_choice("statistic", self.statistic, ("entropy",))
        check_choice("tokens", self.tokens, ("all", "last"))
        if any(k < 1 for k in self.top):
            raise ArgumentError(f"top must hold numbers of keys, each at least 1; got {self.top}.")
        if check_whole("shown", self.shown, 0) and self.tokens != "all":
            raise ArgumentError(f"shown={self.shown} needs tokens='all'; got {self.tokens!r}.")

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of a pass in the eager implementation."""
        return source.pass_key(eager=True)

    def collector(self, source: Source) -> Any:
        """Return what reduces the maps."""
        return source.attention_collector(self.layers, self.tokens, self.top, self.shown)

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of the modules up to the last map."""
        return source.tensors_read_for_attention(self.layers)

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit of every text."""
        return np.asarray(inputs.groups)


@dataclass(frozen=True)
class Losses(Need):
    """Loss of every text in nats per predicted token: Dataset ``loss(text)``, ``tokens(text)``.

    ``own_unigram(text)`` and, of causal models, ``own_bigram(text)`` are what the model's own word
    frequencies and bigrams cost: the means of its predictions over all places, and over those
    after the same token.

    ``objective`` is ``"causal"`` (next token), ``"masked"`` (a fixed random `mask_fraction` of the
    ordinary tokens is replaced by the mask token) or ``"auto"`` (from the model's class).
    """

    on: str | None = None
    objective: str = "auto"
    mask_fraction: float = 0.15
    random_state: int = 0

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, ("auto", "causal", "masked"))
        if not 0 < self.mask_fraction < 1:
            raise ArgumentError(
                f"mask_fraction must lie between 0 and 1; got {self.mask_fraction}."
            )

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of a whole pass, over masked texts if masked tokens are predicted."""
        masked = source.masked(self.objective)
        return source.pass_key((self.mask_fraction, self.random_state) if masked else None)

    def collector(self, source: Source) -> Any:
        """Return what adds up the losses."""
        return source.loss_collector()

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of all modules that are called."""
        return source.tensors_read()

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit of every text."""
        return np.asarray(inputs.groups)


@dataclass(frozen=True)
class Predictor(Need):
    """The model as something to be asked what it predicts: an `ontogeny.capture.Predictor`.

    It may be asked about any texts, until the next checkpoint is read: it is the model itself, and
    not kept. Forward passes are its own.

    Parameters
    ----------
    on
        Name of the input set whose mask token and layout count; ``None`` means the study's first.
    objective
        ``"causal"`` (the next token), ``"masked"`` (what the mask token hides) or ``"auto"`` (from
        the model's class).
    """

    on: str | None = None
    objective: str = "auto"

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, ("auto", "causal", "masked"))

    def check(self, source: Source) -> None:
        """Refuse a model of unknown objective, and a masked one without a mask token."""
        source.predictor(self.objective)

    def read(self, source: Source) -> Any:
        """Return the model with what it takes to ask it."""
        return source.predictor(self.objective)

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of all modules that are called."""
        return source.tensors_read()


@dataclass(frozen=True)
class Weights(Need):
    """Weight matrices over all steps, mapped over blocks: globs over names, or short names."""

    blocks: str | tuple[str, ...] = "*.weight"
    reads_inputs: ClassVar[bool] = False
    runs_model: ClassVar[bool] = False
    over: ClassVar[str] = "block"

    def __post_init__(self) -> None:
        if isinstance(self.blocks, list):
            object.__setattr__(self, "blocks", tuple(self.blocks))

    @property
    def patterns(self) -> tuple[str, ...]:
        """The block globs as a tuple."""
        return (self.blocks,) if isinstance(self.blocks, str) else self.blocks


@dataclass(frozen=True)
class Model(Need):
    """The module itself, for exclusive use; its parameters and mode are restored afterwards."""

    reads_inputs: ClassVar[bool] = False
    runs_model: ClassVar[bool] = False
    exclusive: ClassVar[bool] = True

    def read(self, source: Source) -> Any:
        """Return the module."""
        return source.model


@dataclass(frozen=True)
class Gradients(Need):
    """The module with a loss on an input set, for observables that differentiate it.

    The value has ``.model`` (for exclusive use, gradients enabled; parameters, buffers, modes,
    hooks and ``requires_grad`` come back afterwards, also after an error), ``.inputs`` (the input
    set, with its labels), ``.loss(model, batch)`` (a scalar tensor, the mean over what the batch
    predicts) and ``.draw(count, size)`` (random batches).

    Parameters
    ----------
    loss
        Name of a loss: ``"next-token"``, ``"masked"``, ``"classification"`` (labels of the input
        set), or an entry point of the group ``ontogeny.losses`` of an installed package
        (decision 7: never a path to code). ``None`` is read off the model's class; ``"none"``
        gives a model of which no loss is known.
    on
        Name of the input set; ``None`` means the study's first.
    mask_fraction, random_state
        For ``"masked"``: the fixed random share of ordinary tokens that is replaced by the mask
        token, and its seed.
    """

    loss: str | None = None
    on: str | None = None
    mask_fraction: float = 0.15
    random_state: int = 0
    exclusive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.mask_fraction < 1:
            raise ArgumentError(
                f"mask_fraction must lie between 0 and 1; got {self.mask_fraction}."
            )

    def check(self, source: Source) -> None:
        """Refuse a loss that is unknown or does not fit the model and its inputs."""
        source.gradients(self)

    def read(self, source: Source) -> Any:
        """Return the model with its loss."""
        return source.gradients(self)


@dataclass(frozen=True)
class InputSet(Need):
    """An input set itself, as it is read: ids, mask, texts and labels. No forward pass.

    ``on`` is its name; ``None`` means the study's first.
    """

    on: str | None = None
    runs_model: ClassVar[bool] = False

    def read(self, source: Source) -> Any:
        """Return the inputs, padded as they are read."""
        return source.inputs

    def tensors(self, source: Source) -> set[str]:
        """Return no tensors: the texts are the same at every checkpoint."""
        return set()


@dataclass(frozen=True)
class Readouts(Need):
    """Maps from directions of layers to logits: ``{module path: ontogeny.capture.Readout}``.

    Layers without one are left out: those that do not write into the residual stream, and all
    layers of models without a vocabulary map. `ontogeny.capture.why_no_readout` tells the reason.
    A few texts are run, for the scales of the norms.

    Parameters
    ----------
    layers
        Glob or globs over module paths, or short names.
    on
        Name of the input set that the scales of norms are measured on; ``None`` means the study's
        first.
    """

    layers: str | tuple[str, ...]
    on: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.layers, list):
            object.__setattr__(self, "layers", tuple(self.layers))

    def read(self, source: Source) -> Any:
        """Return the maps of the layers that have one."""
        patterns = (self.layers,) if isinstance(self.layers, str) else self.layers
        return source.readouts(patterns)

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of all modules that are called."""
        return source.tensors_read()

    def size(self, source: Source) -> int:
        """Return the bytes of the vocabulary map in float32."""
        return 4 * source.unembedding_size()


@dataclass(frozen=True)
class Reference(Need):
    """What `need` gives at the study's reference step, memory-mapped."""

    need: Need

    @property
    def at_step(self) -> Need:
        """The need that is read at the reference step."""
        return self.need

    def units(self, inputs: Any) -> np.ndarray:
        """Return the units of what is read at the reference step."""
        return self.need.units(inputs)


@dataclass(frozen=True)
class Series(Need):
    """What another observable of the study found at all steps, mapped over its layers.

    Parameters
    ----------
    node
        Name of the other observable.
    variables
        Names of its variables.
    """

    node: str
    variables: tuple[str, ...]
    reads_inputs: ClassVar[bool] = False
    runs_model: ClassVar[bool] = False
    over: ClassVar[str] = "layer"
