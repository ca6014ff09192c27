"""What observables of joint concepts share: codes of another node, on the same tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..errors import ArgumentError
from .arguments import check_node
from .base import Observable
from .of_activations import OfActivations


class OfJointConcepts(OfActivations):
    """An observable of the codes of a node ``joint-concepts``, named by its argument `of`."""

    of: str

    shared: ClassVar[tuple[str, ...]] = ("layers", "on", "tokens", "max_tokens", "random_state")
    """Arguments that both nodes must have alike."""

    def check(self) -> None:
        """Refuse what is no name of a node."""
        super().check()
        check_node("of", self.of)

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse a node of other concepts, and codes of other tokens or layers."""
        of = observables[self.of]
        if of.kind != "joint-concepts":
            raise ArgumentError(
                f"{self.name} needs a node of joint concepts; {self.of!r} is of kind {of.kind!r}."
            )
        for name in self.shared:
            mine, other = getattr(self, name), getattr(of, name)
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
