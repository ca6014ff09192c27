"""The concept atlas: what one concept of a result is, as a card, a table and a label by a person.

``result.concept("joint-concepts", layer=3, index=5)`` is made here. This package knows results
only; `ontogeny.observables` measures what stands on the cards.
"""

from __future__ import annotations

from ..report.concepts.facts import Context, Effect, Facts, Life, Neighbour, Token
from .accessor import ConceptAccessor, with_labels
from .card import Concept
from .labels import Labels, read_labels
from .table import ConceptTable

__all__ = [
    "Concept",
    "ConceptAccessor",
    "ConceptTable",
    "Context",
    "Effect",
    "Facts",
    "Labels",
    "Life",
    "Neighbour",
    "Token",
    "read_labels",
    "with_labels",
]
