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
import xarray as xr

from .atlas_contexts import FULL, MISSING, packed, packed_contexts
from .content import Content
from .formats import plain_text, plural
from .labels import short_names
from .life_lines import Concept, Concepts, of
from .pieces import Pieces
from .removals import read_removals
from .scales import StepScale

MOST = 480
"""Concepts that the atlas holds; of more, the sharpest of each layer."""

KEYFRAMES = 8
"""Checkpoints of which a card shows contexts."""


@dataclass(frozen=True)
class Atlas:
    """What the template says of the atlas, and what its scripts draw."""

    title: str
    about: str
    notices: tuple[str, ...]
    layers: tuple[tuple[int, str], ...]
    kinds: tuple[str, ...]
    payload: dict[str, Any]


def read_atlas(content: Content, concepts: Concepts | None) -> Atlas | None:
    """Return the atlas of a result's concepts, none where it has no concept."""
    if concepts is None or not concepts.every:
        return None
    shown = _shown(concepts)
    pieces = Pieces.of(concepts.data)
    payload = _payload(content, concepts, shown, pieces)
    notices = []
    if len(shown) < len(concepts.every):
        notices.append(
            f"{plural(len(shown), 'concept')} of {len(concepts.every):,} shown: the sharpest of "
            "each layer."
        )
    if pieces.known and pieces.numbers_only:
        notices.append("The run holds no tokenizer; tokens are shown by number.")
    layers = {each.place[0]: each.short_layer for each in shown}
    return Atlas(
        title="Concept atlas",
        about=_about(concepts),
        notices=tuple(notices),
        layers=tuple(sorted(layers.items())),
        kinds=tuple(sorted({each.kind for each in shown})),
        payload=payload,
    )


def _about(concepts: Concepts) -> str:
    """Say what was fitted, and how names were given."""
    known = f"{plural(len(concepts.every), 'concept')} can be read from single checkpoints"
    if concepts.unnamed:
        return f"{known}. No name could be given: {concepts.unnamed.rstrip('.')}."
    if concepts.named is None:
        return f"{known}. They were not named, so each stands by its number, the strongest first."
    rule = (
        "A name is given by the tokens that carry most of a concept’s activation, and only where "
        "three tokens carry more of it than for 95 % of the untrained model’s concepts in that "
        "layer."
    )
    if not concepts.named:
        return (
            f"No concept is sharper than in the untrained model; {len(concepts.every):,} were "
            f"fitted, see them anyway. {rule}"
        )
    return f"{known}; {concepts.named:,} got a name. {rule}"


def _shown(concepts: Concepts) -> list[Concept]:
    """Return at most `MOST` concepts, the same number of each layer, the sharpest first."""
    if len(concepts.every) <= MOST:
        return list(concepts.every)
    layers = {each.place[0] for each in concepts.every}
    share = max(MOST // len(layers), 1)
    kept: dict[int, int] = {}
    found = []
    for each in concepts.every:
        kept[each.place[0]] = kept.get(each.place[0], 0) + 1
        if kept[each.place[0]] <= share:
            found.append(each)
    return found


def _payload(
    content: Content, concepts: Concepts, shown: Sequence[Concept], pieces: Pieces
) -> dict[str, Any]:
    data = concepts.data
    order = [shown.index(line) for line in concepts.lines if line in shown]
    strength, readable = _courses(data, shown, concepts.readable)
    steps = data["step"].values.astype(int)
    keys = np.array([_keyframes(each, steps) for each in shown])
    removals = read_removals(content, concepts.node.path)
    cards = [
        _card(data, each, pieces) | {"removed": removals.get((each.layer, each.number))}
        for each in shown
    ]
    contexts = packed_contexts(data, shown, keys, pieces)
    return {
        "path": concepts.node.path,
        "naming": _naming(concepts),
        "steps": steps.tolist(),
        "edges": {
            kind: StepScale(content.steps, kind).edges(steps).round(5).tolist()
            for kind in ("log", "linear")
        },
        "layers": _layers(data),
        "concepts": cards,
        "lines": order,
        "strength": packed(strength),
        "readable": packed(readable.astype(np.uint8)),
        "keys": packed(keys.astype(np.uint16)),
        "contexts": contexts,
        "pieces": pieces.texts,
    }


def _naming(concepts: Concepts) -> str:
    """Return whether names could be given (else "absent"), and whether any was."""
    if concepts.named is None or concepts.unnamed:
        return "absent"
    return "named" if concepts.named else "none"


def _courses(
    data: xr.Dataset, shown: Sequence[Concept], limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return (concept, step) strength as a share of its peak in bytes, and where it is readable."""
    layer, number_ = (np.array([each.place[i] for each in shown]) for i in (0, 1))
    strength, course = (
        data[name].transpose("layer", "concept", "step").values[layer, number_].astype(float)
        for name in ("strength", "readability")
    )
    peak = np.array([each.peak for each in shown])[:, None]
    share = np.clip(strength / np.where(peak > 0, peak, np.nan), 0, 1)
    coded = np.where(np.isfinite(share), np.round(np.nan_to_num(share) * FULL), MISSING)
    return coded.astype(np.uint8), np.nan_to_num(course, nan=-1.0) >= limit


def _keyframes(concept: Concept, steps: np.ndarray) -> list[int]:
    """Return places of steps: first, readable, born, settled, last, and even ones between."""
    wanted = [concept.readable_from, concept.born, concept.settled]
    found = {0, len(steps) - 1}
    found.update(int(np.argmin(np.abs(steps - w))) for w in wanted if math.isfinite(w))
    for place in np.linspace(0, len(steps) - 1, KEYFRAMES).round().astype(int).tolist():
        if len(found) < KEYFRAMES:
            found.add(place)
    order = sorted(found)
    return order + order[-1:] * (KEYFRAMES - len(order))


def _card(data: xr.Dataset, concept: Concept, pieces: Pieces) -> dict[str, Any]:
    place = concept.place
    card: dict[str, Any] = {
        "id": concept.address,
        "layer": place[0],
        "group": concept.group,
        "number": concept.number,
        "name": concept.given or concept.name,
        "given": bool(concept.given),
        "kind": concept.kind,
        "peak": _finite(concept.peak),
        "sharp": _finite(concept.sharpness),
    }
    for name in ("born", "after", "before", "settled", "gone", "readable_from"):
        card[name] = _finite(getattr(concept, name))
    card["chips"] = _tokens(data, "token_id", "token_share", place, pieces)
    card["up"] = _tokens(data, "written_up_id", "written_up", place, pieces)[:3]
    card["down"] = _tokens(data, "written_down_id", "written_down", place, pieces)[:3]
    card["near"] = _near(data, place)
    for short, name in (
        ("fires", "firing"), ("random", "written_random"), ("p", "name_p"),
    ):  # fmt: skip
        card[short] = _one(data, name, place)
    card["answers"] = _enrichment(data, place)
    return card


def _finite(value: float, digits: int = 4) -> float | None:
    if not math.isfinite(value):
        return None
    whole = float(value).is_integer()
    return int(value) if whole else float(f"{value:.{digits}g}")


def _one(data: xr.Dataset, name: str, place: tuple[int, int]) -> float | None:
    """Return a single number of a concept, nothing where there is none or several."""
    if name not in data or not {"layer", "concept"} <= set(data[name].dims):
        return None
    value = np.asarray(of(data, name, place), dtype=float)
    return _finite(float(value)) if value.ndim == 0 else None


def _tokens(
    data: xr.Dataset, ids: str, values: str, place: tuple[int, int], pieces: Pieces
) -> list[list[Any]]:
    """Return tokens as places of pieces, each with its number."""
    if ids not in data or values not in data:
        return []
    numbers = np.asarray(of(data, values, place), dtype=float)
    tokens = np.nan_to_num(np.asarray(of(data, ids, place), dtype=float), nan=-1).astype(int)
    return [
        [pieces.place(int(token)), _finite(float(value), 3)]
        for token, value in zip(tokens.ravel(), numbers.ravel(), strict=True)
        if token >= 0 and math.isfinite(value)
    ]


def _near(data: xr.Dataset, place: tuple[int, int]) -> list[list[Any]]:
    if "near" not in data or "near_cosine" not in data:
        return []
    others = np.asarray(of(data, "near", place), dtype=float).ravel()
    cosines = np.asarray(of(data, "near_cosine", place), dtype=float).ravel()
    return [
        [int(other), round(float(cosine), 2)]
        for other, cosine in zip(others, cosines, strict=True)
        if math.isfinite(cosine) and other >= 0
    ]


def _enrichment(data: xr.Dataset, place: tuple[int, int]) -> list[Any]:
    """Return what explains most of the code: the token, one beside it, or the place; its share."""
    if "enrichment" not in data or "position" not in data["enrichment"].dims:
        return []
    shares = np.asarray(of(data, "enrichment", place), dtype=float).ravel()
    if not np.isfinite(shares).any():
        return []
    best = int(np.nanargmax(shares))
    return [str(data["position"].values[best]), _finite(float(shares[best]), 2)]


def _layers(data: xr.Dataset) -> list[dict[str, Any]]:
    """Return every layer with its names, and what names in it are measured against."""
    paths = [plain_text(label) for label in data["layer"].values]
    return [
        {"path": path, "short": short, "depth": short.removeprefix("layer ")} | _nulls(data, i)
        for i, (path, short) in enumerate(zip(paths, short_names(paths), strict=True))
    ]


def _nulls(data: xr.Dataset, i: int) -> dict[str, Any]:
    """Return how sharp the untrained model's concepts are, and what got names in control runs."""
    found: dict[str, Any] = {"limit": None, "untrained": [], "controls": []}
    if "concentration_limit" in data and data["concentration_limit"].dims == ("layer",):
        found["limit"] = _finite(float(data["concentration_limit"].values[i]))
    if "concentration_untrained" in data:
        values = data["concentration_untrained"].isel(layer=i).values.ravel().astype(float)
        found["untrained"] = np.sort(values[np.isfinite(values)]).round(3).tolist()
    if "named_control" in data and set(data["named_control"].dims) == {"layer", "run"}:
        counts = data["named_control"].isel(layer=i)
        names = counts["run"].values if "run" in counts.coords else range(counts.sizes["run"])
        found["controls"] = [
            [str(name), int(count)]
            for name, count in zip(names, counts.values.astype(float), strict=True)
            if math.isfinite(count)
        ]
    return found
