"""What the atlas says of a layer: what its names and strengths are measured against."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ...words.catalogue import concepts as say
from ...words.catalogue import learned_concepts as beyond
from ...words.content import Content
from ...words.formats import plain_text, plural
from ...words.labels import short_names
from .arrays import ConceptArrays
from .cards import finite
from .learned import control_words, is_learned
from .lives import Concept


def layers(
    content: Content, arrays: ConceptArrays, address: str
) -> list[dict[str, Any]]:
    """Return every layer with its names, and what names in it are measured against.

    `address` is how links to the concepts of a node begin.
    """
    paths = [plain_text(label) for label in arrays.data["layer"].values]
    learned = is_learned(arrays.data)
    asked = _asked(len(paths), content.model.get("blocks", 0)) if learned else []

    def of_controls(layer: int) -> list[str]:
        words = control_words(arrays.data, layer) if learned else []
        return [content.voice.fill(each) for each in words]

    return [
        {
            "path": path,
            "short": short,
            "depth": short.removeprefix("layer "),
            "address": layer_address(address, path),
            "group": content.groups.of(path),
            **_nulls(arrays, i),
            "control_words": [*of_controls(i), *asked],
        }
        for i, (path, short) in enumerate(zip(paths, short_names(paths), strict=True))
    ]


def _asked(layers: int, blocks: int) -> list[str]:
    """Return in a sentence that not all blocks of a model were asked, and why."""
    if layers >= blocks:
        return []
    asked, of = plural(layers, "layer"), plural(blocks, "block")
    return [beyond.LAYERS_ASKED.format(asked=asked, blocks=of)]


def node_address(path: str) -> str:
    """Return how links to the concepts of a node begin."""
    return f"concept={safe(path)}"


def layer_address(node: str, path: str) -> str:
    """Return how links to the concepts of a layer begin, from that of its node.

    Examples
    --------
    >>> layer_address(node_address("learned-concepts"), "h.1")
    'concept=learned-concepts/h.1/'
    """
    return f"{node}/{safe(path)}/"


def concept_address(path: str, concept: Concept) -> str:
    """Return how a link to a concept of the node at a path ends."""
    layer = layer_address(node_address(path), plain_text(concept.layer))
    return f"{layer}{concept.number}"


def unnamed_layers(arrays: ConceptArrays) -> list[str]:
    """Return a sentence for each layer in which no name could be given."""
    if arrays.dims("unnamed_because") != {"layer"}:
        return []
    shorts = short_names([plain_text(label) for label in arrays.data["layer"].values])
    reasons = [
        plain_text(reason).rstrip(".") for reason in arrays.at_step("unnamed_because")
    ]
    return [
        say.NO_NAME_IN.format(layer=short, reason=reason)
        for short, reason in zip(shorts, reasons, strict=True)
        if reason
    ]


def safe(text: str) -> str:
    """Return a part of an address: what the address itself uses is replaced."""
    return re.sub(r"[^\w.@\-]", "-", text)


def _nulls(arrays: ConceptArrays, i: int) -> dict[str, Any]:
    """Return how sharp the untrained model's concepts are, and what got names in control runs."""
    nulls: dict[str, Any] = {"limit": None, "untrained": [], "controls": []}
    if arrays.dims("concentration_limit") == {"layer"}:
        nulls["limit"] = finite(float(arrays.at_step("concentration_limit")[i]))
    if "concentration_untrained" in arrays:
        values = arrays.at_step("concentration_untrained")[i].ravel().astype(float)
        nulls["untrained"] = np.sort(values[np.isfinite(values)]).round(3).tolist()
    if arrays.dims("named_control") == {"layer", "run"}:
        counts = arrays.at_step("named_control")[i].astype(float)
        names = arrays.data["run"].values if "run" in arrays else range(len(counts))
        nulls["controls"] = [
            [str(name), int(count)]
            for name, count in zip(names, counts, strict=True)
            if math.isfinite(count)
        ]
    return nulls
