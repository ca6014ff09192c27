"""Further concepts for the atlas: other lives, and concepts that were fitted to single steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...words.catalogue.captions import CAPTIONS
from ...words.content import Content
from ...words.formats import step_text
from ...words.nodes import Node
from .learned import is_learned
from .lives import Concept, Concepts
from .nodes import of_lives, of_step, with_lives

STEPS = 8  # steps of which concepts that are fitted to each of them are shown, at most

Tracks = Mapping[tuple[str, int], tuple[int, int]]


@dataclass(frozen=True)
class Fitted:
    """The concepts of one fit: of all steps together, or of the one at ``step``.

    ``how`` says what was done, after the number of concepts, and ``most`` of them are shown.
    ``tracks`` says from which step to which a concept can be followed from fit to fit, by layer
    and number; ``changes`` what became of it since the first checkpoint, where all checkpoints have
    one code (``one_code``) and are too few for lives.
    """

    concepts: Concepts
    title: str
    most: int
    how: str = "can be read from single checkpoints"
    step: int | None = None
    tracks: Tracks = field(default_factory=dict)
    one_code: bool = False
    changes: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def followed(self, concept: Concept) -> dict[str, Any]:
        """Return the first and the last step that a concept can be followed to, or what it became.

        What it became stands in place of the kind of its life.
        """
        key = (concept.layer, concept.number)
        change = {"kind": self.changes[key]} if key in self.changes else {}
        return change | (
            {"followed": list(self.tracks[key])} if key in self.tracks else {}
        )


def further_concepts(
    content: Content, first: Concepts | None, most: int
) -> list[Fitted]:
    """Return the fits beside the one of the first screen, `most` concepts of all together."""
    if content.runs:  # of several runs
        return []
    taken = first.node.path if first else None
    lives = [node for node in with_lives(content) if node.path != taken]
    single = [node for node in content.nodes if _of_single_steps(node)]
    single.sort(key=lambda node: not is_learned(node.dataset))
    if not lives and not single:
        return []
    share = most // (len(lives) + len(single))
    titles = [
        node.title for node in (*([first.node] if first else []), *lives, *single)
    ]
    parts = [
        Fitted(of_lives(content, node), _title(node, titles), max(share, 1))
        for node in lives
    ]
    for node in single:
        parts += _of_steps(content, node, _title(node, titles), share)
    return parts


def _of_single_steps(node: Node) -> bool:
    """Return whether a node describes concepts that have no lives."""
    data = node.dataset
    dims = {"layer", "concept", "rank"}
    described = is_learned(data) or (
        "token_share" in data and set(data["token_share"].dims) - {"step"} == dims
    )
    return described and "concept_kind" not in data and "step" in data.dims


def _title(node: Node, titles: list[str]) -> str:
    return f"{node.title} ({node.path})" if titles.count(node.title) > 1 else node.title


def _of_steps(content: Content, node: Node, title: str, share: int) -> list[Fitted]:
    """Return the fits of some steps of a node, the last one first."""
    data = node.dataset
    steps = data["step"].values.astype(int)
    if is_learned(data) or "step" not in data["token_share"].dims:
        how = "of one code for all checkpoints; lives take at least 3 of these"
        fit = (of_step(node, -1), title, max(share, 1), how, int(steps[-1]))
        return [Fitted(*fit, one_code=True, changes=_changes(content, node))]
    per_step = data.sizes["layer"] * data.sizes["concept"]
    count = max(1, min(share // max(per_step, 1), STEPS, len(steps)))
    places = np.unique(np.linspace(len(steps) - 1, 0, count).round().astype(int))[::-1]
    tracks = _tracks(content, node)
    voice = content.voice
    return [
        Fitted(
            of_step(node, int(place)),
            f"{title}, {voice.unit} {step_text(steps[place])}",
            max(share // count, 1),
            "fitted to this model"
            if content.one_model
            else CAPTIONS["fitted"].format(
                step=f"{voice.unit} {step_text(steps[place])}",
                checkpoint=voice.checkpoint,
            ),
            int(steps[place]),
            tracks.get(int(steps[place]), {}),
        )
        for place in places
    ]


def _changes(content: Content, node: Node) -> dict[tuple[str, int], str]:
    """Return what became of the concepts of a node, from the node that says so."""
    for other in content.nodes:
        if (
            content.arguments_of(other.path).get("of") == node.path
            and "called" in other.dataset
        ):
            kinds = (
                other.dataset["change_kind"].transpose("layer", "concept").to_series()
            )
            named = kinds.replace("no concept", "not readable")
            return {
                (str(layer), int(n)): str(kind) for (layer, n), kind in named.items()
            }
    return {}


def _tracks(content: Content, node: Node) -> dict[int, Tracks]:
    """Return for each step how far its concepts can be followed, from the node of their tracks."""
    by_step: dict[int, dict[tuple[str, int], tuple[int, int]]] = {}
    for other in content.nodes:
        data = other.dataset
        dims = {"layer", "step", "concept"}
        if (
            content.arguments_of(other.path).get("of") != node.path
            or "track" not in data
        ):
            continue
        if set(data["track"].dims) != dims:
            continue
        tracks = (
            data["track"].transpose("layer", "step", "concept").values.astype(float)
        )
        for i, layer in enumerate(data["layer"].values):
            for number in np.unique(tracks[i][np.isfinite(tracks[i])]):
                at, concept = np.nonzero(tracks[i] == number)
                steps = data["step"].values[at].astype(int)
                for step, j in zip(steps.tolist(), concept.tolist(), strict=True):
                    ends = (int(steps.min()), int(steps.max()))
                    by_step.setdefault(step, {})[str(layer), j] = ends
    return dict(by_step)
