"""What a page calls the parts of subjects."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..claims import Claim, Kind

# Claims whose numbers are shares of examples.
SHARES = (Kind.ABOVE_CHANCE, Kind.GAINED, Kind.LOST, Kind.CHANGED_ON_ITEMS)


@dataclass(frozen=True)
class Names:
    """How the parts of subjects are called on one page.

    Parameters
    ----------
    titles
        Of quantities, by node and variable, as they stand within a sentence.
    layers
        Short names of module paths.
    totals
        How many rows a quantity has, by node and variable.
    called
        What these rows are called where they are counted, such as ``"layers"``.
    runs
        How many runs stand beside each other; 1 of a study of one.
    nulls
        What nulls are called, by node, variable and name.
    first_step
        Of what holds there already, nothing says since when.
    several
        Quantities, by node and variable, whose title is a plural.
    """

    titles: Mapping[tuple[str, str], str] = field(default_factory=dict)
    layers: Mapping[str, str] = field(default_factory=dict)
    totals: Mapping[tuple[str, str], int] = field(default_factory=dict)
    called: Mapping[tuple[str, str], str] = field(default_factory=dict)
    runs: int = 1
    nulls: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    first_step: float = -math.inf
    several: Collection[tuple[str, str]] = ()

    def null(self, claim: Claim) -> str:
        """Return what a claim that differs from a null is held against."""
        subject = claim.subject
        name = claim.beside[0].name
        return self.nulls.get((subject.node, subject.quantity, name), name)

    def title(self, claim: Claim) -> str:
        """Return what a claim is about, within a sentence."""
        subject = claim.subject
        if claim.kind in SHARES:
            return f"“{subject.label}”"
        quantity = subject.quantity.replace("_", " ")
        return self.titles.get(
            (subject.node, subject.quantity), quantity or subject.node
        )

    def layer(self, path: str) -> str:
        """Return a layer in short, on one line."""
        return self.layers.get(path, path).replace(" ", "\N{NO-BREAK SPACE}")
