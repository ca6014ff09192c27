"""Presets: what is studied and how thoroughly, as data that one checkpoint's facts fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import check_choice
from ..observables import ModelFacts, Observable, PresetEntry
from ..observables.registry import kinds, make


@dataclass(frozen=True)
class Preset:
    """How thoroughly a run is studied; which observables stand in it these say themselves.

    Attributes
    ----------
    layers
        At how many layers activations are read.
    described
        At how many of them concepts are described.
    """

    name: str
    title: str
    steps: int = 24
    texts: int = 250
    length: int = 64
    tokens: int = 3000
    concepts: int = 20
    latents: int = 100
    layers: int = 4
    described: int = 2
    controls: int = 3
    control_steps: int = 6


_OF_LAYERS = {"$layers", "$described", "$streams"}
# What the standard preset is where a run goes on from a model that existed before.
FINE_TUNING = "fine-tuning"
# What the standard preset is where there is a single checkpoint, and so no time.
ONE_MODEL = "one-model"

# Texts of which concepts beyond the token have the 60,000 tokens that they take.
_TEXTS_FOR_CONCEPTS = 940

_ALL = (
    Preset(
        "quick",
        "what the model can do, and how far its layers have moved",
        steps=8,
        texts=80,
        tokens=1000,
        layers=2,
        controls=4,
        control_steps=3,
    ),
    Preset(
        "standard",
        "what the model can do, its concepts and its attention",
        texts=_TEXTS_FOR_CONCEPTS,
    ),
    Preset("abilities", "what the model can do, and its loss", controls=4),
    Preset("weights", "in which directions the weights move"),
    Preset("circuits", "attention, and what concepts do to predictions"),
    Preset(
        FINE_TUNING,
        "what a further training changed: abilities, concepts, attention, weights",
        steps=12,
        texts=_TEXTS_FOR_CONCEPTS,
    ),
    Preset(
        ONE_MODEL,
        "what one model can do, its heads, its named concepts and its dimensions",
        texts=_TEXTS_FOR_CONCEPTS,
        concepts=40,
        controls=0,
    ),
    Preset(
        "everything",
        "all that needs neither labels nor a task of its own",
        steps=40,
        texts=_TEXTS_FOR_CONCEPTS,
        tokens=5000,
    ),
)
PRESETS = {preset.name: preset for preset in _ALL}


def preset_named(name: str) -> Preset:
    """Return a preset.

    Raises
    ------
    ArgumentError
        If there is none of this name.
    """
    return PRESETS[check_choice("preset", name, PRESETS)]


def entries_of(preset: Preset) -> list[tuple[str, PresetEntry]]:
    """Return the kinds of a preset with their entries, in the order of the page.

    Raises
    ------
    ArgumentError
        If an observable names a preset that there is not.
    """
    entries: list[tuple[str, PresetEntry]] = []
    for kind, cls in kinds().items():
        for entry in cls.presets:
            for name in entry.presets:
                check_choice(f"a preset of the observable {kind!r}", name, PRESETS)
            if preset.name in entry.presets:
                entries.append((kind, entry))
    return sorted(entries, key=lambda pair: pair[1].place)


def fitted(
    preset: Preset, model: ModelFacts, checkpoints: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the tables of a preset's observables for a model, and why others were left out."""
    values = _values(preset, model)
    tables = []
    left_out = {}
    for kind, entry in entries_of(preset):
        here = [getattr(model, name) for name in entry.obstacles]
        if not _OF_LAYERS.isdisjoint(map(str, entry.arguments.values())):
            here.append(model.no_layers)
        why = kinds()[kind].ruled_out(model, checkpoints) or next(
            filter(None, here), ""
        )
        if why:
            left_out[kind] = why
        else:
            tables.append({"kind": kind, **_filled(entry.arguments, values)})
    tables = _complete(tables, left_out)
    # Nobody expects classes of it.
    if not model.model_class.endswith("SequenceClassification"):
        left_out.pop("labels", None)
    return tables, left_out


def _complete(
    tables: list[dict[str, Any]], left_out: dict[str, str]
) -> list[dict[str, Any]]:
    """Return tables without those whose observables read another one that was left out."""
    made = [make(**table) for table in tables]
    names = {observable.name for observable in made}
    kept = []
    for table, observable in zip(tables, made, strict=True):
        nodes = (*observable.nodes_read, observable.state_of)
        if lacking := [node for node in nodes if node and node not in names]:
            left_out[observable.kind] = f"it reads {lacking[0]}, which is left out"
        else:
            kept.append(table)
    return kept if len(kept) == len(tables) else _complete(kept, left_out)


_ANSWERS = 5  # that observables keep by default
_FEW_BLOCKS = 6  # after each of which concepts are looked for
_LATENTS = 12  # more than the draws of what concepts do to predictions


def filled_entry(
    cls: type[Observable], preset: Preset, model: ModelFacts
) -> dict[str, Any]:
    """Return the arguments of an observable's first table, whichever presets it stands in."""
    arguments = cls.presets[0].arguments if cls.presets else {}
    return _filled(arguments, _values(preset, model))


def _values(preset: Preset, model: ModelFacts) -> dict[str, Any]:
    """Return what the arguments of entries are filled with; None leaves an argument out."""
    auto = model.named or not model.objective
    losses = {"causal": "next-token", "masked": "masked"}
    return {
        "$layers": _some(model, preset.layers),
        "$described": _some(model, preset.described, inner=True),
        "$streams": _streams(model, preset.described),
        "$tokens": preset.tokens,
        "$concepts": max(2, min(preset.concepts, model.width // 2)),
        "$latents": max(_LATENTS, min(preset.latents, 2 * model.width)),
        "$blocks": list(model.blocks),
        "$changed": [*model.blocks, *model.adapted],
        "$answers": few if (few := model.tokens) and few < _ANSWERS else None,
        "$loss": None if auto else losses[model.objective],
    }


def _streams(model: ModelFacts, count: int) -> Sequence[str] | str:
    """Return after which blocks the stream is read: after each of a small model."""
    if 0 < len(model.streams) <= _FEW_BLOCKS:
        return "resid"
    if not model.streams:
        return _some(model, count, inner=True)
    return _spread(model.streams, count, inner=True)


def _some(model: ModelFacts, count: int, inner: bool = False) -> Sequence[str] | str:
    """Return patterns of some layers, evenly spread; those between the ends are `inner`."""
    if count >= len(model.layers):
        return model.every_layer
    return _spread(model.layers, count, inner)


def _spread(layers: Sequence[str], count: int, inner: bool) -> list[str]:
    places = np.linspace(0, len(layers) - 1, count + 2 * inner).round().astype(int)
    places = np.unique(places[1:-1] if inner else places)
    return [layers[i] for i in places]


def _filled(arguments: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    filled = {
        name: values.get(value, value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    return {name: value for name, value in filled.items() if value is not None}
