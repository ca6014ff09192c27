"""What the card of one concept says, as the page's script reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .arrays import ConceptArrays
from .facts import Facts, Token
from .lives import Concept
from .tokens import Pieces

_STEPS = ("born", "after", "before", "settled", "gone", "readable_from")


def card(arrays: ConceptArrays, concept: Concept, pieces: Pieces) -> dict[str, Any]:
    """Return what is known of a concept; what is not known is left out."""
    facts: Facts = arrays.facts(concept.place, node="", step=None)
    known: dict[str, Any] = {
        "layer": concept.place[0],
        "number": concept.number,
        "name": concept.given or concept.name,
        "token_name": concept.name if concept.given else "",
        "given": bool(concept.given),
        "kind": concept.kind,
        "sharp": finite(concept.sharpness, 3),
        "chips": _tokens(facts.tokens, pieces),
        "up": _tokens(facts.written_up, pieces),
        "down": _tokens(facts.written_down, pieces),
        "near": [[other.index, round(other.cosine, 2)] for other in facts.neighbours],
        "answers": _explained(facts.enrichment),
        **{name: finite(getattr(concept, name)) for name in _STEPS},
        "fires": finite(facts.firing, 3),
        "random": finite(facts.written_random, 3),
        "again": finite(arrays.number("found_again", concept.place), 3),
    }
    return {name: value for name, value in known.items() if value or type(value) in (int, float)}


def finite(value: float, digits: int = 4) -> float | None:
    """Return a number with few digits, nothing of what is not finite."""
    if not math.isfinite(value):
        return None
    whole = float(value).is_integer()
    return int(value) if whole else float(f"{value:.{digits}g}")


def _tokens(tokens: Sequence[Token], pieces: Pieces) -> list[list[Any]]:
    """Return the first three tokens as places of pieces, each with its number."""
    return [[pieces.place(token.id), finite(token.value, 3)] for token in tokens][:3]


def _explained(shares: dict[str, float]) -> list[Any]:
    """Return what explains most of the code: the token, one beside it, or the place; its share."""
    known = {name: share for name, share in shares.items() if math.isfinite(share)}
    best = max(known, key=known.__getitem__, default="")
    return [best, finite(known[best], 2)] if best else []
