"""What observables of the activations of some layers share: which of them they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..needs import Activations, Need
from .base import Observable
from .catalogued import PASS


class OfActivations(Observable):
    """An observable of activations; its subclasses have these fields.

    They are no fields of this class: a dataclass puts inherited fields first, and several kinds
    have arguments of their own between `layers` and the others.
    """

    layers: str | tuple[str, ...]
    on: str | None
    tokens: str
    max_tokens: int | None
    random_state: int

    requires: ClassVar[str] = "texts"
    price: ClassVar[str] = PASS

    @property
    def activations(self) -> Activations:
        """The activations here."""
        return self.activations_on(self.on)

    def activations_on(self, on: str | None) -> Activations:
        """Return the activations of another input set."""
        return Activations(self.layers, on, self.tokens, self.max_tokens, self.random_state)

    def needs(self) -> Sequence[Need]:
        """Return the activations."""
        return [self.activations]


@dataclass(frozen=True)
class OfSampledActivations(OfActivations):
    """An observable of activations with the usual arguments, before those of its own."""

    layers: str | tuple[str, ...] = "mlp"
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
