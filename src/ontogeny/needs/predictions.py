"""Needs of what a model predicts: losses, the predictor behind them, and their gradients."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import check_choice, check_number
from .base import Need, PassNeed, Source


@dataclass(frozen=True)
class Losses(PassNeed):
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
        check_number("mask_fraction", self.mask_fraction, 0, 1, above=True, below=True)

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of a whole pass, over masked texts if masked tokens are predicted."""
        masked = source.masked(self.objective)
        return source.pass_key(
            (self.mask_fraction, self.random_state) if masked else None
        )

    def collector(self, source: Source) -> Any:
        """Return what adds up the losses."""
        return source.loss_collector

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit of every text."""
        return np.asarray(inputs.groups)


@dataclass(frozen=True)
class Reduced(PassNeed):
    """What a function makes of the prediction of every token, in the passes that losses share.

    ``function`` is a frozen value. Its ``reduction(inputs, masked)`` is a
    `ontogeny.capture.predicted.Reduction` that has ``result(numbers)``: the need's value.
    """

    function: Any
    on: str | None = None
    objective: str = "auto"
    random_state: int = 0

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of the pass of losses."""
        return self._losses.pass_key(source)

    def collector(self, source: Source) -> Any:
        """Return what listens to the predictions."""
        return source.reduced_collector(self.function)

    @property
    def _losses(self) -> Losses:
        return Losses(self.on, self.objective, random_state=self.random_state)


@dataclass(frozen=True)
class Predictor(PassNeed):
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
        (never a path to code). ``None`` is read off the model's class; ``"none"``
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
    exclusive = True

    def __post_init__(self) -> None:
        check_number("mask_fraction", self.mask_fraction, 0, 1, above=True, below=True)

    def check(self, source: Source) -> None:
        """Refuse a loss that is unknown or does not fit the model and its inputs."""
        source.gradients(self)

    def read(self, source: Source) -> Any:
        """Return the model with its loss."""
        return source.gradients(self)
