"""What observables of the activations of some layers share: which of them they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ..errors import ArgumentError
from ..needs import Activations, Need
from .arguments import check_node
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

    requires = "texts"
    price = PASS

    @property
    def activations(self) -> Activations:
        """The activations here."""
        return self.activations_on(self.on)

    def activations_on(self, on: str | None) -> Activations:
        """Return the activations of another input set."""
        return Activations(
            self.layers, on, self.tokens, self.max_tokens, self.random_state
        )

    def needs(self) -> Sequence[Need]:
        """Return the activations."""
        return [self.activations]


@dataclass(frozen=True)
class OfSampledActivations(OfActivations):
    """An observable of activations with the usual arguments: layers, its own, and the others."""

    layers: str | tuple[str, ...] = "mlp"
    _: KW_ONLY
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0


class OfJointConcepts(OfActivations):
    """An observable of the codes of a node ``joint-concepts``, named by its argument `of`."""

    of: str

    kinds_of: ClassVar[tuple[str, ...]] = ("joint-concepts",)
    """Kinds of nodes that `of` may name."""

    shared: ClassVar[tuple[str, ...]] = (
        "layers",
        "on",
        "tokens",
        "max_tokens",
        "random_state",
    )
    """Arguments that both nodes must have alike."""

    def check(self) -> None:
        """Refuse what is no name of a node."""
        super().check()
        check_node("of", self.of)

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse a node of other concepts, and codes of other tokens or layers."""
        of = observables[self.of]
        if of.kind not in self.kinds_of:
            raise ArgumentError(
                f"{self.name} needs a node of kind {' or '.join(self.kinds_of)}; {self.of!r} is "
                f"of kind {of.kind!r}."
            )
        for name in self.shared:
            mine = getattr(self, name)
            other = getattr(of, name)
            if mine != other:
                raise ArgumentError(
                    f"{name} of {self.name} must be that of {self.of}, {other!r}; got {mine!r}."
                )

    @property
    def state_of(self) -> str:
        """The node whose codes are used."""
        return self.of

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The node that says which latents are concepts."""
        return (self.of,)
