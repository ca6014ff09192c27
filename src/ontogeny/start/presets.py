"""Presets: what is studied and how thoroughly, as data that one checkpoint's facts fill in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import check_choice
from .shown import Shown


@dataclass(frozen=True)
class Preset:
    """How thoroughly a run is studied, and what of it."""

    title: str
    observables: tuple[str, ...]
    """Names in `ENTRIES`."""
    steps: int = 24
    texts: int = 250
    length: int = 64
    tokens: int = 3000
    concepts: int = 20
    latents: int = 100
    layers: int = 4
    """At how many layers activations are read."""
    described: int = 2
    """At how many of them concepts are described."""
    controls: int = 3
    control_steps: int = 6


_SIGHT = ("loss", "predictions", "token losses", "coarse to fine")
_CONCEPTS = ("joint concepts", "svd", "ica")
_CIRCUITS = ("heads", "copying", "in context", "n-grams", "lens", "calibration")

PRESETS: dict[str, Preset] = {
    "quick": Preset(
        "what the model can do, and how far its layers have moved",
        ("loss", "predictions", "decay", "dimensions"),
        steps=8, texts=80, tokens=1000, layers=2, controls=2, control_steps=4,
    ),
    "standard": Preset(
        "what the model can do, its concepts, its attention and its weights",
        (*_SIGHT, *_CONCEPTS, "decay", "attention", "ranks"),
    ),
    "weights": Preset(
        "in which directions the weights move",
        ("loss", "ranks", "orientation", "vocabulary"),
    ),
    "circuits": Preset(
        "attention, and what concepts do to predictions",
        (*_SIGHT, "joint concepts", "effects", "attention", *_CIRCUITS, "similarity"),
    ),
    "everything": Preset(
        "all that needs neither labels nor a task of its own",
        (
            *_SIGHT, *_CONCEPTS, "effects", "distances", "tracks", "intrinsic dimension",
            "encoder", "decay", "dimensions", "similarity", "attention", "ranks", "orientation",
            "vocabulary", "commutators", "regimes", "learning", *_CIRCUITS,
        ),
        steps=40, tokens=5000,
    ),
}  # fmt: skip

# Arguments of the form "$name" are filled in by what the checkpoint shows.
_READ = {"layers": "$layers", "max_tokens": "$tokens"}
_DESCRIBED = {"layers": "$described", "max_tokens": "$tokens"}
_CONCEPT = {"kind": "concepts", "n_concepts": "$concepts", **_READ}

ENTRIES: dict[str, dict[str, Any]] = {
    "loss": {"kind": "loss", "objective": "$objective"},
    "predictions": {"kind": "predictions", "objective": "$objective"},
    "token losses": {"kind": "token-losses", "objective": "$objective"},
    "joint concepts": {"kind": "joint-concepts", "n_concepts": "$latents", **_DESCRIBED},
    "svd": {**_CONCEPT, "extractor": "svd"},
    "ica": {**_CONCEPT, "extractor": "ica"},
    "effects": {"kind": "concept-effects", "objective": "$objective", **_DESCRIBED},
    "distances": {"kind": "concept-distances", "of": "concepts-ica"},
    "tracks": {"kind": "concept-tracks", "of": "concepts-ica"},
    "intrinsic dimension": {"kind": "intrinsic-dimension", "of": "concepts-ica"},
    "encoder": {"kind": "encoder-dynamics", "n_concepts": "$concepts", **_READ},
    "decay": {"kind": "activation-decay", **_READ},
    "dimensions": {"kind": "effective-dimensions", **_READ},
    "similarity": {"kind": "similarity", **_READ},
    "attention": {"kind": "attention-entropy"},
    "heads": {"kind": "attention-heads"},
    "copying": {"kind": "copying-heads"},
    "in context": {"kind": "in-context-learning"},
    "coarse to fine": {
        "kind": "text-statistics", "loss": "loss", "objective": "$objective",
    },
    "n-grams": {"kind": "ngram-agreement", "objective": "$objective"},
    "lens": {"kind": "logit-lens", "objective": "$objective"},
    "calibration": {"kind": "calibration", "objective": "$objective"},
    "ranks": {"kind": "weight-rank", "blocks": "$blocks"},
    "orientation": {"kind": "orientation", "blocks": "$blocks"},
    "vocabulary": {"kind": "vocabulary-concepts", "n_concepts": "$concepts"},
    "commutators": {"kind": "commutators", "loss": "$loss"},
    "regimes": {"kind": "regimes", "of": "concepts-ica", "select": {"distance": "procrustes"}},
    "learning": {
        "kind": "learning-dynamics", "of": "concepts-ica", "select": {"distance": "procrustes"},
    },
}  # fmt: skip
"""Tables of a study file."""

_PREDICTING = (
    "loss", "predictions", "token-losses", "concept-effects", "commutators", "in-context-learning",
    "ngram-agreement", "logit-lens", "calibration", "text-statistics",
)  # fmt: skip
_OF_CAUSAL = ("in-context-learning", "ngram-agreement")

_FEWEST = {
    "concept-distances": 2, "concept-tracks": 2, "intrinsic-dimension": 2, "orientation": 2,
    "regimes": 2, "joint-concepts": 3, "concept-effects": 3, "weight-rank": 3,
    "vocabulary-concepts": 4, "learning-dynamics": 4,
}  # fmt: skip
"""Checkpoints that observables of change over steps need."""


def preset_named(name: str) -> Preset:
    """Return a preset.

    Raises
    ------
    ArgumentError
        If there is none of this name.
    """
    return PRESETS[check_choice("preset", name, PRESETS)]


def fitted(
    preset: Preset, shown: Shown, checkpoints: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the tables of a preset's observables for a model, and why others were left out."""
    values = _values(preset, shown)
    tables, left_out = [], {}
    for name in preset.observables:
        entry = ENTRIES[name]
        why = _why_not(entry["kind"], shown) or _too_few(entry["kind"], checkpoints)
        if why:
            left_out[entry["kind"]] = why
        else:
            tables.append(_filled(entry, values))
    return tables, left_out


def _too_few(kind: str, checkpoints: int) -> str:
    """Return that there are too few checkpoints for an observable; empty if there are not."""
    fewest = _FEWEST.get(kind, 1)
    return f"it takes at least {fewest} checkpoints" if checkpoints < fewest else ""


def _why_not(kind: str, shown: Shown) -> str:
    """Return why a model cannot be studied by an observable; empty if it can."""
    if kind in _PREDICTING and shown.no_prediction:
        return shown.no_prediction
    if kind in _OF_CAUSAL and shown.objective == "masked":
        return "it compares tokens by what stands before them, and a masked model sees both sides"
    if kind == "logit-lens" and not shown.family:
        return f"the way from the layers of {shown.model_class} to its logits is not known"
    if kind in ("attention-entropy", "attention-heads"):
        return shown.no_maps
    if kind == "copying-heads":
        return shown.no_copying
    if kind in ("weight-rank", "orientation") and not shown.blocks:
        return "no weight matrices were found"
    if kind == "vocabulary-concepts" and not shown.embedded:
        return "the rows of its token embedding were not found; name them with blocks = ..."
    return ""


def _values(preset: Preset, shown: Shown) -> dict[str, Any]:
    """Return what the arguments of entries are filled with; None leaves an argument out."""
    auto = shown.named or not shown.objective
    losses = {"causal": "next-token", "masked": "masked"}
    return {
        "$layers": _some(shown, preset.layers),
        "$described": _some(shown, preset.described, inner=True),
        "$tokens": preset.tokens,
        "$concepts": max(2, min(preset.concepts, shown.width // 2)),
        "$latents": max(4, min(preset.latents, 2 * shown.width)),
        "$blocks": list(shown.blocks),
        "$objective": None if auto else shown.objective,
        "$loss": None if auto else losses[shown.objective],
    }


def _some(shown: Shown, count: int, inner: bool = False) -> list[str] | str:
    """Return patterns of some layers, evenly spread; those between the ends are `inner`."""
    total = len(shown.layers)
    if count >= total:
        return shown.every_layer
    chosen = np.linspace(0, total - 1, count + 2 * inner).round().astype(int)
    chosen = np.unique(chosen[1:-1] if inner else chosen)
    return [shown.layers[i] for i in chosen]


def _filled(entry: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    filled = {
        key: values.get(value, value) if isinstance(value, str) else value
        for key, value in entry.items()
    }
    return {key: value for key, value in filled.items() if value is not None}
