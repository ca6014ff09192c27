"""What the card of one concept says, and what its removal costs, as the page's script reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...words.content import Content
from ...words.formats import plain_text
from .arrays import ConceptArrays
from .facts import Facts, Token
from .learned import fields as learned_fields
from .learned import is_learned
from .lives import Concept
from .tokens import Pieces

_COSTS = ("judged_removed", "judged_random", "judged_other")
_REMOVAL = {"removed_concept", "verdict", "judged_step", *_COSTS}

Removals = dict[tuple[str, int], dict[str, Any]]

_STEPS = ("born", "after", "before", "settled", "gone", "readable_from")


def card(arrays: ConceptArrays, concept: Concept, pieces: Pieces) -> dict[str, Any]:
    """Return what is known of a concept; what is not known is left out."""
    facts: Facts = arrays.facts(concept.place, node="", step=None)
    fields: dict[str, Any] = {
        "layer": concept.place[0],
        "number": concept.number,
        "name": concept.given or concept.name,
        "token_name": concept.name if concept.given else "",
        "given": bool(concept.given),
        "kind": concept.kind,
        "course": concept.course if concept.course != concept.kind else "",
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
        "half": finite(arrays.number("half", concept.place), 3),
    }
    if is_learned(arrays.data):
        fields |= learned_fields(arrays, concept.place)
        del fields["sharp"]
    return {
        name: value
        for name, value in fields.items()
        if value or type(value) in (int, float)
    }


def finite(value: float, digits: int = 4) -> float | None:
    """Return a number with few digits, nothing of what is not finite."""
    if not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(f"{value:.{digits}g}")


def _tokens(tokens: Sequence[Token], pieces: Pieces) -> list[list[Any]]:
    """Return the first three tokens as places of pieces, each with its number."""
    return [[pieces.place(token.id), finite(token.value, 3)] for token in tokens][:3]


def _explained(shares: dict[str, float]) -> list[Any]:
    """Return what explains most of the code: the token, one beside it, or the place; its share."""
    by_word = {name: share for name, share in shares.items() if math.isfinite(share)}
    best = max(by_word, key=by_word.__getitem__, default="")
    return [best, finite(by_word[best], 2)] if best else []


def read_removals(content: Content, of: str) -> Removals:
    """Return for each removed concept, by layer and number, what it costs beside its controls.

    Read from the effects of the concepts of node `of`; a node that does not say of which, is taken
    to be of the only concepts there are. Empty where none was removed, or none was judged.
    """
    for node in content.nodes:
        data = node.dataset
        observable = content.arguments_of(node.path)
        if not set(data.data_vars) >= _REMOVAL or observable.get("of", of) != of:
            continue
        if (
            set(data["verdict"].dims) != {"layer", "removal"}
            or data["judged_step"].size != 1
        ):
            continue
        order = ("layer", "removal")
        numbers = {n: data[n].transpose(*order).values.astype(float) for n in _COSTS}
        verdicts = data["verdict"].transpose(*order).values.astype(object)
        concepts = data["removed_concept"].transpose(*order).values.astype(float)
        step = float(data["judged_step"].values.reshape(-1)[0])
        mask = (
            np.isfinite(concepts)
            & np.isfinite(numbers["judged_removed"])
            & (verdicts != "")
        )
        return {
            (plain_text(data["layer"].values[i]), int(concepts[i, k])): {
                "step": step,
                "verdict": plain_text(verdicts[i, k]),
                **{
                    name.removeprefix("judged_"): finite(numbers[name][i, k], 3)
                    for name in _COSTS
                },
            }
            for i, k in np.argwhere(mask).tolist()
        }
    return {}
