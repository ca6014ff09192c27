"""What an observable reads of one checkpoint, as values that can be compared and merged.

Equal needs are read once. A reading's key is (input set, corruption, attention implementation):
needs with the same key share one forward pass, others get their own, so that adding an observable
never changes another one's numbers (decision 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import ArgumentError, check_choice

__all__ = [
    "Activations",
    "Attention",
    "Gradients",
    "InputSet",
    "Losses",
    "Model",
    "Need",
    "Reference",
    "Series",
    "Weights",
]

GRANULARITIES = ("all", "mean", "last", "cls", "masked")


class Need:
    """What is read of one checkpoint: a frozen dataclass, so that equal needs are read once."""

    on: str | None = None
    """Name of the input set that is read; None means the study's first."""

    def units(self, inputs: Any) -> np.ndarray:
        """Return the index of the text that each row of the value belongs to.

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

    def units(self, inputs: Any) -> np.ndarray:
        """Return the text of every row that is kept: the same rows at every checkpoint."""
        return np.asarray(inputs.sample(self.tokens, self.max_tokens, self.random_state).text)


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
    """

    layers: str | tuple[str, ...] = "*"
    on: str | None = None
    statistic: str = "entropy"
    tokens: str = "all"
    top: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("layers", "top"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        check_choice("statistic", self.statistic, ("entropy",))
        check_choice("tokens", self.tokens, ("all", "last"))
        if any(k < 1 for k in self.top):
            raise ArgumentError(f"top must hold numbers of keys, each at least 1; got {self.top}.")

    def units(self, inputs: Any) -> np.ndarray:
        """Return one unit for each text."""
        return np.arange(len(inputs))


@dataclass(frozen=True)
class Losses(Need):
    """Loss of every text in nats per predicted token: Dataset ``loss(text)``, ``tokens(text)``.

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

    def units(self, inputs: Any) -> np.ndarray:
        """Return one unit for each text."""
        return np.arange(len(inputs))


@dataclass(frozen=True)
class Weights(Need):
    """Weight matrices over all steps, mapped over blocks: globs over names, or short names."""

    blocks: str | tuple[str, ...] = "*.weight"

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
        lends a model of which no loss is known.
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

    def __post_init__(self) -> None:
        if not 0 < self.mask_fraction < 1:
            raise ArgumentError(
                f"mask_fraction must lie between 0 and 1; got {self.mask_fraction}."
            )


@dataclass(frozen=True)
class InputSet(Need):
    """An input set itself, as it is read: ids, mask, texts and labels. No forward pass.

    ``on`` is its name; ``None`` means the study's first.
    """

    on: str | None = None


@dataclass(frozen=True)
class Reference(Need):
    """What `need` gives at the study's reference step, memory-mapped."""

    need: Need

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
