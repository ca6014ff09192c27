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

from ...words.content import Content
from ...words.formats import plural
from ..scales import StepScale
from .arrays import ConceptArrays
from .cards import card, read_removals
from .contexts import packed, packed_contexts, shares
from .layers import has_controls, layers, mean_strengths, safe, unnamed_layers
from .lives import FEW, MARKS, MORE, SHADES, Concept, Concepts, choice_words
from .nodes import APART
from .steps import Fitted, further_concepts
from .tokens import Pieces

MOST = 480
"""Concepts that the atlas holds of the first screen's node; of more, the sharpest of each layer."""

MOST_FURTHER = 360
"""Concepts that it holds of all other nodes together, which a menu leads to."""

KEYFRAMES, FEWER, MANY = 8, 6, 240
"""Checkpoints of which a card shows contexts; fewer where there are many concepts."""

RULE = (
    "A name is given by the tokens that carry most of a concept’s activation, and only where three "
    "tokens carry more of it than for 95 % of the untrained model’s concepts in that layer."
)


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
    def titles(self) -> list[str]:
        """Titles of its dictionaries, as a menu lists them."""
        return [each["title"] for each in (self.payload, *self.further)]


def read_atlas(content: Content, concepts: Concepts | None) -> Atlas | None:
    """Return the atlas of a result's concepts, none where it has no concept.

    `concepts` are those of the first screen. Other nodes with concepts follow in a menu: further
    lives, and concepts that were fitted to single steps, which have no lives.
    """
    further = further_concepts(content, concepts, MOST_FURTHER)
    found = [_payload(content, each) for each in further if each.concepts.every]
    if concepts is not None and concepts.every:
        found.insert(0, _payload(content, Fitted(concepts, concepts.node.title, MOST)))
    if not found:
        return None
    first, *others = found
    return Atlas(
        title="Concept atlas",
        about=first["about"],
        notices=tuple(first["notices"]),
        layers=tuple(sorted({(c["layer"], first["layers"][c["layer"]]["short"])
                             for c in first["concepts"]})),
        kinds=tuple(sorted({c["kind"] for c in first["concepts"] if "kind" in c})),
        payload=first,
        further=tuple(others),
    )  # fmt: skip


def _about(content: Content, fitted: Fitted) -> str:
    """Say what was fitted, how names were given, and what they are compared with."""
    concepts = fitted.concepts
    known = f"{plural(len(concepts.every), 'concept')} {fitted.how}"
    if concepts.apart:
        known += (
            f", which both halves of the texts find; {len(concepts.apart):,} more that one fit "
            "alone found stand apart, under “not found again”"
        )
    if concepts.unnamed:
        return f"{known}. No name could be given: {concepts.unnamed.rstrip('.')}."
    if concepts.named is None:
        return f"{known}. They were not named, so each stands by its number, the strongest first."
    if not concepts.named:
        return (
            f"No concept is sharper than in the untrained model; {len(concepts.every):,} were "
            f"fitted, see them anyway. {RULE}"
        )
    alone = "" if content.controls else (
        " No control was run, so it is not known how many names motion alone would give."
    )  # fmt: skip
    return f"{known}; {concepts.named:,} got a name. {RULE}{alone}"


def _notices(fitted: Fitted, shown: Sequence[Concept], pieces: Pieces) -> list[str]:
    """Say what is left out, and what tokens are where no tokenizer is known."""
    found = []
    every = len(fitted.concepts.every)
    replicating = sum(each.kind != APART for each in shown)
    if replicating < every:
        found.append(
            f"{plural(replicating, 'concept')} of {every:,} shown: the sharpest of each layer."
        )
    if not fitted.concepts.unnamed:
        found += unnamed_layers(fitted.concepts.arrays)
    if pieces.known and pieces.numbers_only:
        found.append("The run holds no tokenizer; tokens are shown by number.")
    return found


def _shown(concepts: Concepts, most: int) -> list[Concept]:
    """Return at most `most` concepts, the same number of each layer, the sharpest first."""
    if len(concepts.every) <= most:
        return list(concepts.every)
    share = max(most // len({each.place[0] for each in concepts.every}), 1)
    kept: dict[int, int] = {}
    found = []
    for each in concepts.every:
        kept[each.place[0]] = kept.get(each.place[0], 0) + 1
        if kept[each.place[0]] <= share:
            found.append(each)
    return found


def _payload(content: Content, fitted: Fitted) -> dict[str, Any]:
    concepts, arrays = fitted.concepts, fitted.concepts.arrays
    shown, pieces = _shown(concepts, fitted.most), Pieces.of(concepts.data)
    shown += concepts.apart[: max(fitted.most - len(shown), 0)]
    removals = read_removals(content, concepts.node.path)
    cards = []
    for each in shown:
        removed = removals.get((each.layer, each.number))
        extra = {"removed": removed} if removed else {}
        cards.append(card(arrays, each, pieces) | extra | fitted.followed(each))
    keys = None if fitted.step is not None else _keyframes(shown, arrays)
    contexts = packed_contexts(arrays, shown, keys, pieces)
    at = "" if fitted.step is None else f"@{fitted.step}"
    return {
        "path": concepts.node.path,
        "title": fitted.title,
        "about": _about(content, fitted),
        "notices": _notices(fitted, shown, pieces),
        "naming": _naming(concepts),
        "numbers": pieces.known and pieces.numbers_only,
        "step": fitted.step,
        "layers": layers(content, arrays, f"concept={safe(concepts.node.path)}{at}"),
        "concepts": cards,
        "contexts": contexts,
        "pieces": pieces.texts,
        **({} if keys is None else _lives(content, concepts, shown, keys)),
    }


def _naming(concepts: Concepts) -> str:
    """Return whether names could be given (else "absent"), and whether any was."""
    if concepts.named is None or concepts.unnamed:
        return "absent"
    return "named" if concepts.named else "none"


def _lives(
    content: Content, concepts: Concepts, shown: Sequence[Concept], keys: np.ndarray
) -> dict[str, Any]:
    """Return what is over steps: strengths, where they are readable, and the lines to draw."""
    arrays = concepts.arrays
    steps = arrays.data["step"].values.astype(int)
    strength, readable = _courses(arrays, shown, concepts.readable)
    return {
        "steps": steps.tolist(),
        "edges": {
            kind: StepScale(content.steps, kind).edges(steps).round(5).tolist()
            for kind in ("log", "linear")
        },
        "views": _views(content, concepts, shown),
        "means": mean_strengths(arrays, concepts.every),
        "strength": packed(strength),
        "readable": packed(np.packbits(readable, axis=1)),
        "keys": packed(keys.astype(np.uint16)),
    }


def _views(content: Content, concepts: Concepts, shown: Sequence[Concept]) -> list[dict[str, Any]]:
    """Return what the life lines can show: a few concepts, more of them, and all."""
    place = {each.place: i for i, each in enumerate(shown)}
    views: list[dict[str, Any]] = []
    for count in (FEW, MORE):
        lines = [place[each.place] for each in concepts.choice(count) if each.place in place]
        if not views or len(lines) > len(views[-1]["lines"]):
            words = f"{choice_words(concepts, count)} {SHADES} {MARKS}"
            views.append({"label": f"{len(lines):,}", "lines": lines, "words": words})
    every = len(concepts.every)
    all_words = f"All {plural(every, 'concept')}" if every > 1 else "The only concept"
    replicating = sum(each.kind != APART for each in shown)
    if replicating < every:
        all_words = f"{replicating:,} of {every:,} concepts, the sharpest of each layer"
    label = f"all {replicating:,}"
    if apart := len(shown) - replicating:
        all_words += f", and {apart:,} latents that are not found again"
        label += f" + {apart:,}"
    words = f"{all_words}, by layer and birth; named or not. {SHADES} Ticks: births."
    words += f" {_means_words(content, concepts)}"
    return [*views, {"label": label, "lines": None, "words": words}]


def _means_words(content: Content, concepts: Concepts) -> str:
    """Say what is drawn under the concepts of a layer."""
    line = "Under each layer: mean strength of its concepts, each as a share of its peak"
    if has_controls(concepts.arrays):
        return f"{line}; grey: of those of the control runs."
    why = "The result does not hold that of control runs." if content.controls else (
        "No control was run."
    )  # fmt: skip
    return f"{line}. {why}"


def _courses(
    arrays: ConceptArrays, shown: Sequence[Concept], limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return (concept, step) strength as a share of its peak in bytes, and where it is readable."""
    layer, number = (np.array([each.place[i] for each in shown]) for i in (0, 1))
    strength, course = (
        arrays.over_steps(name)[layer, number] for name in ("strength", "readability")
    )
    peak = np.array([each.peak for each in shown])[:, None]
    share = strength / np.where(peak > 0, peak, np.nan)
    return shares(share), np.nan_to_num(course, nan=-1.0) >= limit


def _keyframes(shown: Sequence[Concept], arrays: ConceptArrays) -> np.ndarray:
    """Return places of steps of each concept at which contexts are kept."""
    steps = arrays.data["step"].values.astype(int)
    count = KEYFRAMES if len(shown) <= MANY else FEWER
    return np.array([_own_keyframes(each, steps, count) for each in shown])


def _own_keyframes(concept: Concept, steps: np.ndarray, count: int) -> list[int]:
    """Return places of steps: first, readable, born, settled, last, and even ones between."""
    wanted = [concept.readable_from, concept.born, concept.settled]
    found = {0, len(steps) - 1}
    found.update(int(np.argmin(np.abs(steps - w))) for w in wanted if math.isfinite(w))
    for place in np.linspace(0, len(steps) - 1, count).round().astype(int).tolist():
        if len(found) < count:
            found.add(place)
    order = sorted(found)
    return order + order[-1:] * (count - len(order))
