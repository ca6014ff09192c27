"""The loss of a run for its picture: both ends, what guesses cost, and what control runs reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..claims import Kind
from .catalogue import LABELS
from .content import Content

OF_TEXTS = ("blind guess", "word frequencies", "bigrams")


@dataclass(frozen=True)
class LossCurve:
    """The ends of the loss, and what guesses cost at the last step, by what they are.

    ``of_model`` holds what means of the model's own predictions cost.
    """

    title: str
    units: str
    first: float
    last: float
    levels: dict[str, float]
    of_model: dict[str, float]


def read_loss(content: Content) -> LossCurve | None:
    """Return the loss, none where it was not measured; of several runs what all of them share."""
    if content.track_node is None or content.track is None:
        return None
    losses = content.track.values[np.isfinite(content.track.values)]
    costs: dict[str, list[float]] = {}
    for claim in content.claims:
        if claim.kind is Kind.PASSES and claim.subject.node == content.track_node.path:
            costs.setdefault(claim.subject.label, []).append(claim.beside[0].value)
    runs = content.names.runs
    shared = {
        label: values[0]
        for label, values in costs.items()
        if len({*values}) == 1 and len(values) == runs
    }
    words = {
        label: LABELS[label].format(word=content.voice.word).removeprefix("a ")
        for label in shared
    }
    return LossCurve(
        title=content.track.title,
        units=content.track.units,
        first=float(losses[0]),
        last=float(losses[-1]),
        levels={words[label]: shared[label] for label in OF_TEXTS if label in shared},
        of_model={
            words[label]: shared[label] for label in shared if label not in OF_TEXTS
        },
    )


def control_curve(content: Content) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return the lower and upper ends of the control runs' loss at the steps of the loss."""
    node = content.track_node
    if node is None:
        return None
    curves: list[list[float]] = []
    for end in ("low", "high"):
        values = node.dataset.get(f"loss_control_{end}")
        if values is not None and values.dims == ("run", "step"):
            values = values.min("run") if end == "low" else values.max("run")
        if values is None or values.dims != ("step",):
            return None
        curves.append(values.values.astype(float).tolist())
    return curves[0], curves[1]
