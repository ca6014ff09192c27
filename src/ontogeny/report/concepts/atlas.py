"""The concept atlas: what each concept responds to, writes and neighbours, packed for the page.

Strengths are stored as small integers and contexts at no more than eight checkpoints of each
concept, so that 24 layers of 20 concepts over 154 checkpoints stay under a megabyte.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...words.catalogue import concepts as say
from ...words.catalogue import learned_concepts
from ...words.content import Content
from ...words.formats import plural
from . import learned
from .arrays import ConceptArrays
from .cards import card, read_removals
from .contexts import packed, packed_contexts, shares
from .layers import layers, node_address, unnamed_layers
from .lives import Concept, Concepts, best_of
from .nodes import APART
from .steps import Fitted, further_concepts
from .tokens import Pieces

# Concepts that the atlas holds of the first screen's node; of more, the sharpest of each layer.
MOST = 480

# Concepts that it holds of all other nodes together, which a menu leads to.
MOST_FURTHER = 360

KEYFRAMES = 8
FEWER = 6
MANY = 240
"""Checkpoints of which a card shows contexts; fewer where there are many concepts."""


@dataclass(frozen=True)
class Atlas:
    """What the template says of the atlas at first, and what its scripts draw."""

    title: str
    about: str
    notices: tuple[str, ...]
    layers: tuple[tuple[int, str], ...]
    kinds: tuple[str, ...]
    payload: dict[str, Any]
    further: tuple[dict[str, Any], ...] = ()

    @property
    def lives(self) -> list[tuple[str, str]]:
        """The kinds of life that are there, with what they mean."""
        known = learned_concepts.KINDS if self.payload["learned"] else say.KINDS
        return [(kind, words) for kind, words in known.items() if kind in self.kinds]

    @property
    def addresses(self) -> set[str]:
        """Where links to the concepts of its first dictionary lead."""
        layers = self.payload["layers"]
        return {
            f"{layers[each['layer']]['address']}{each['number']}"
            for each in self.payload["concepts"]
        }

    @property
    def titles(self) -> list[str]:
        """Titles of its dictionaries, as a menu lists them."""
        return [payload["title"] for payload in (self.payload, *self.further)]


def read_atlas(content: Content, concepts: Concepts | None) -> Atlas | None:
    """Return the atlas of a result's concepts, none where it has no concept.

    `concepts` are those of the first screen. Other nodes with concepts follow in a menu: further
    lives, and concepts that were fitted to single steps, which have no lives.
    """
    further = further_concepts(content, concepts, MOST_FURTHER)
    payloads = [_payload(content, fit) for fit in further if fit.concepts.every]
    if concepts is not None and concepts.every:
        payloads.insert(
            0, _payload(content, Fitted(concepts, concepts.node.title, MOST), True)
        )
    if not payloads:
        return None
    first, *others = payloads
    return Atlas(
        title="Concept atlas",
        about=first["about"],
        notices=tuple(first["notices"]),
        layers=tuple(
            sorted(
                {
                    (c["layer"], first["layers"][c["layer"]]["short"])
                    for c in first["concepts"]
                }
            )
        ),
        kinds=tuple(sorted({c["kind"] for c in first["concepts"] if "kind" in c})),
        payload=first,
        further=tuple(others),
    )


def _about(content: Content, fitted: Fitted, is_first: bool) -> str:
    """Say what was fitted, how names were given, and what they are compared with.

    How many concepts there are the first screen says of the first ones, where it is no zero.
    """
    concepts = fitted.concepts
    if learned.is_learned(concepts.data):
        births = f" {learned_concepts.BIRTHS}" if concepts.born else ""
        is_told = is_first and not concepts.is_zero
        found = "" if is_told else "; ".join(learned.found_words(concepts.data)) + ". "
        return f"{found}{learned_concepts.RULE}{births}{_without(content)}"
    words = f"{plural(len(concepts.every), 'concept')} {fitted.how}"
    if concepts.apart:
        words += say.APART.format(count=f"{len(concepts.apart):,}")
    if concepts.unnamed:
        return words + say.NO_NAMES.format(reason=concepts.unnamed.rstrip("."))
    if concepts.named is None:
        return words + say.NUMBERED
    if not concepts.named:
        return f"{words}{say.NONE_GOT_A_NAME} {say.RULE}"
    named = say.GOT_A_NAME.format(count=f"{concepts.named:,}")
    return f"{words}{named} {say.RULE}{_without(content)}"


def _without(content: Content) -> str:
    """Say what is not known without control runs."""
    if content.controls or content.one_model:
        return ""
    return say.NO_CONTROL


def _notices(
    fitted: Fitted, concepts: Sequence[Concept], pieces: Pieces, has_contexts: bool
) -> list[str]:
    """Say what is left out, and what tokens are where no tokenizer is known."""
    sentences = []
    every = len(fitted.concepts.every)
    replicating = sum(concept.kind != APART for concept in concepts)
    if replicating < every:
        shown = {"concepts": plural(replicating, "concept"), "all": f"{every:,}"}
        sentences.append(say.SHOWN.format(**shown, best=best_of(fitted.concepts)))
    if not fitted.concepts.unnamed:
        sentences += unnamed_layers(fitted.concepts.arrays)
    if pieces.by_id and pieces.numbers_only:
        sentences.append(say.BY_NUMBER)
    if not has_contexts:
        sentences.append(say.NO_CONTEXTS)
    return sentences


def _selection(concepts: Concepts, most: int) -> list[Concept]:
    """Return at most `most` concepts, the same number of each layer, the sharpest first."""
    if len(concepts.every) <= most:
        return list(concepts.every)
    share = max(most // len({candidate.place[0] for candidate in concepts.every}), 1)
    counts: dict[int, int] = {}
    rows = []
    for candidate in concepts.every:
        counts[candidate.place[0]] = counts.get(candidate.place[0], 0) + 1
        if counts[candidate.place[0]] <= share:
            rows.append(candidate)
    return rows


def _payload(
    content: Content, fitted: Fitted, is_first: bool = False
) -> dict[str, Any]:
    concepts = fitted.concepts
    arrays = concepts.arrays
    picks = _selection(concepts, fitted.most)
    pieces = Pieces.of(concepts.data)
    picks += concepts.apart[: max(fitted.most - len(picks), 0)]
    removals = read_removals(content, concepts.node.path)
    is_learned = learned.is_learned(concepts.data)
    cards = []
    for concept in picks:
        removed = removals.get((concept.layer, concept.number))
        extra = {"removed": removed} if removed else {}
        if is_learned:
            extra |= _told(content, concepts, concept)
        cards.append(card(arrays, concept, pieces) | extra | fitted.followed(concept))
    keys = None if fitted.step is not None else _keyframes(picks, arrays)
    contexts = packed_contexts(arrays, picks, keys, pieces)
    at = "" if fitted.step is None else f"@{fitted.step}"
    of_layers = layers(content, arrays, f"{node_address(concepts.node.path)}{at}")
    if is_learned:
        for i, layer in enumerate(of_layers):
            layer["direction"] = learned.direction(arrays, i, concepts.node.path)
    return {
        "path": concepts.node.path,
        "title": fitted.title,
        "about": content.voice.fill(_about(content, fitted, is_first)),
        "notices": _notices(fitted, picks, pieces, contexts is not None),
        "naming": _naming(concepts),
        "learned": is_learned,
        **(
            {"bins": concepts.data["bin"].values.tolist()}
            if "bin" in concepts.data
            else {}
        ),
        "without": learned_concepts.UNNAMED if is_learned else say.UNNAMED,
        "numbers": pieces.by_id and pieces.numbers_only,
        "step": fitted.step,
        "one_code": fitted.one_code,
        "layers": of_layers,
        "concepts": cards,
        "contexts": contexts,
        "pieces": pieces.texts,
        **({} if keys is None else _lives(concepts, picks, keys)),
    }


def _told(content: Content, concepts: Concepts, concept: Concept) -> dict[str, Any]:
    """Return the sentences of the card of a concept beyond the token."""
    is_judged = bool(concept.name and concepts.named_controls)
    beyond = concept.beyond_controls if is_judged else None
    checkpoint = content.voice.checkpoint
    return {
        **learned.told(concepts.arrays, concept.place, beyond),
        **learned.of_learned(concepts.arrays, concept.place, checkpoint),
    }


def _naming(concepts: Concepts) -> str:
    """Return whether names could be given (else "absent"), and whether any was."""
    if concepts.named is None or concepts.unnamed:
        return "absent"
    return "named" if concepts.named else "none"


def _lives(
    concepts: Concepts, picks: Sequence[Concept], keys: np.ndarray
) -> dict[str, Any]:
    """Return what is over steps: strengths, and where they are readable."""
    arrays = concepts.arrays
    steps = arrays.data["step"].values.astype(int)
    strength, readable = _courses(arrays, picks, concepts.readable)
    return {
        "steps": steps.tolist(),
        "strength": packed(strength),
        "readable": packed(np.packbits(readable, axis=1)),
        "keys": packed(keys.astype(np.uint16)),
    }


def _courses(
    arrays: ConceptArrays, concepts: Sequence[Concept], limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return (concept, step) strength as a share of its peak in bytes, and where it is readable."""
    layer, number = (
        np.array([concept.place[i] for concept in concepts]) for i in (0, 1)
    )
    strength, course = (
        arrays.over_steps(name)[layer, number] for name in ("strength", "readability")
    )
    peak = np.array([concept.peak for concept in concepts])[:, None]
    share = strength / np.where(peak > 0, peak, np.nan)
    return shares(share), np.nan_to_num(course, nan=-1.0) >= limit


def _keyframes(concepts: Sequence[Concept], arrays: ConceptArrays) -> np.ndarray:
    """Return places of steps of each concept at which contexts are kept."""
    steps = arrays.data["step"].values.astype(int)
    count = KEYFRAMES if len(concepts) <= MANY else FEWER
    return np.array([_own_keyframes(concept, steps, count) for concept in concepts])


def _own_keyframes(concept: Concept, steps: np.ndarray, count: int) -> list[int]:
    """Return places of steps: first, readable, born, settled, last, and even ones between."""
    moments = [concept.readable_from, concept.born, concept.settled]
    places = {0, len(steps) - 1}
    places.update(
        int(np.argmin(np.abs(steps - w))) for w in moments if math.isfinite(w)
    )
    for place in np.linspace(0, len(steps) - 1, count).round().astype(int).tolist():
        if len(places) < count:
            places.add(place)
    order = sorted(places)
    return order + order[-1:] * (count - len(order))
