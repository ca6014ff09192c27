"""Needs of what a model does with its inputs: activations, attention, and their readouts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_choice, check_whole
from .base import GRANULARITIES, MASK_FRACTION, Need, PassNeed, Source


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
        Which positions: ``"all"`` (every ordinary token), ``"later"`` (these but for the first
        token of each text), ``"mean"`` (one mean per text), ``"last"`` and ``"cls"`` (last and
        first unpadded token of each text), ``"masked"``
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
        super().__post_init__()
        check_choice("tokens", self.tokens, GRANULARITIES)
        if self.max_tokens is not None and self.max_tokens < 2:
            raise ArgumentError(
                f"max_tokens must be at least 2 or None; got {self.max_tokens}."
            )

    @property
    def patterns(self) -> tuple[str, ...]:
        """The layer globs as a tuple."""
        return self.globs(self.layers)

    def labels(self, source: Source) -> tuple[str, ...]:
        """Return the labels of the modules that match."""
        return source.layers(self.patterns)

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of a pass up to the deepest layer."""
        corruption = (
            (MASK_FRACTION, self.random_state) if self.tokens == "masked" else None
        )
        return source.pass_key(corruption, layers=self.labels(source))

    def collector(self, source: Source) -> Any:
        """Return what gathers the sampled rows."""
        labels = self.labels(source)
        return source.activation_collector(
            labels, self.tokens, self.max_tokens, self.random_state
        )

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


class MapNeed(Need):
    """What is made of the attention maps of texts, in passes that give them."""

    layers: str | tuple[str, ...]

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of a pass that gives attention maps."""
        return source.pass_key(eager=True)

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of the modules up to the last map."""
        return source.tensors_read_for_attention(self.layers)

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit of every text."""
        return np.asarray(inputs.groups)


@dataclass(frozen=True)
class Attention(MapNeed):
    """Attention maps, reduced inside the hook to ``entropy(layer, head, text)``, ``uniform(text)``.

    With `top`, also ``top_mass(k, layer, head, text)``: the mean share of attention that each
    query gives to its k strongest keys. Maps are computed beside the kernel of the
    model; where that cannot be, it runs once more in its eager implementation.

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
        super().__post_init__()
        check_choice("statistic", self.statistic, ("entropy",))
        check_choice("tokens", self.tokens, ("all", "last"))
        if any(k < 1 for k in self.top):
            raise ArgumentError(
                f"top must hold numbers of keys, each at least 1; got {self.top}."
            )
        if check_whole("shown", self.shown, 0) and self.tokens != "all":
            raise ArgumentError(
                f"shown={self.shown} needs tokens='all'; got {self.tokens!r}."
            )

    def collector(self, source: Source) -> Any:
        """Return what reduces the maps."""
        return source.attention_collector(
            self.layers, self.tokens, self.top, self.shown
        )


@dataclass(frozen=True)
class Readouts(PassNeed):
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

    def read(self, source: Source) -> Any:
        """Return the maps of the layers that have one."""
        return source.readouts(self.globs(self.layers))

    def size(self, source: Source) -> int:
        """Return the bytes of the vocabulary map in float32."""
        return 4 * source.unembedding_size()
