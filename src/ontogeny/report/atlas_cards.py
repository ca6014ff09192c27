"""What the card of one concept says, as the page's script reads it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .concept_arrays import ConceptArrays
from .life_lines import Concept
from .pieces import Pieces

_STEPS = ("born", "after", "before", "settled", "gone", "readable_from")
_NUMBERS = {"fires": "firing", "random": "written_random", "again": "found_again"}


def card(arrays: ConceptArrays, concept: Concept, pieces: Pieces) -> dict[str, Any]:
    """Return what is known of a concept; what is not known is left out."""
    place = concept.place
    found: dict[str, Any] = {
        "layer": place[0],
        "number": concept.number,
        "name": concept.given or concept.name,
        "token_name": concept.name if concept.given else "",
        "given": bool(concept.given),
        "kind": concept.kind,
        "sharp": finite(concept.sharpness, 3),
        "chips": _tokens(arrays, "token_id", "token_share", place, pieces)[:3],
        "up": _tokens(arrays, "written_up_id", "written_up", place, pieces)[:3],
        "down": _tokens(arrays, "written_down_id", "written_down", place, pieces)[:3],
        "near": _near(arrays, place),
        "answers": _enrichment(arrays, place),
    }
    found |= {name: finite(getattr(concept, name)) for name in _STEPS}
    found |= {short: _one(arrays, name, place) for short, name in _NUMBERS.items()}
    return {name: value for name, value in found.items() if value or type(value) in (int, float)}


def finite(value: float, digits: int = 4) -> float | None:
    """Return a number with few digits, nothing of what is not finite."""
    if not math.isfinite(value):
        return None
    whole = float(value).is_integer()
    return int(value) if whole else float(f"{value:.{digits}g}")


def _one(arrays: ConceptArrays, name: str, place: tuple[int, int]) -> float | None:
    """Return a single number of a concept, nothing where there is none or several."""
    if arrays.dims(name) != {"layer", "concept"}:
        return None
    return finite(arrays.number(name, place), 3)


def _tokens(
    arrays: ConceptArrays, ids: str, values: str, place: tuple[int, int], pieces: Pieces
) -> list[list[Any]]:
    """Return tokens as places of pieces, each with its number."""
    if ids not in arrays or values not in arrays:
        return []
    numbers = np.asarray(arrays.of(values, place), dtype=float)
    tokens = np.nan_to_num(np.asarray(arrays.of(ids, place), dtype=float), nan=-1).astype(int)
    return [
        [pieces.place(int(token)), finite(float(value), 3)]
        for token, value in zip(tokens.ravel(), numbers.ravel(), strict=True)
        if token >= 0 and math.isfinite(value)
    ]


def _near(arrays: ConceptArrays, place: tuple[int, int]) -> list[list[Any]]:
    if "near" not in arrays or "near_cosine" not in arrays:
        return []
    others = np.asarray(arrays.of("near", place), dtype=float).ravel()
    cosines = np.asarray(arrays.of("near_cosine", place), dtype=float).ravel()
    return [
        [int(other), round(float(cosine), 2)]
        for other, cosine in zip(others, cosines, strict=True)
        if math.isfinite(cosine) and other >= 0
    ]


def _enrichment(arrays: ConceptArrays, place: tuple[int, int]) -> list[Any]:
    """Return what explains most of the code: the token, one beside it, or the place; its share."""
    if "position" not in arrays.dims("enrichment"):
        return []
    shares = np.asarray(arrays.of("enrichment", place), dtype=float).ravel()
    if not np.isfinite(shares).any():
        return []
    best = int(np.nanargmax(shares))
    return [str(arrays.data["position"].values[best]), finite(float(shares[best]), 2)]
