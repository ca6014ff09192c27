"""The loss of a run for its picture: both ends, what guesses cost, and what control runs reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ..trees import found_in
from .content import Content

BEST = "best possible"
# What guesses cost, and the best model, by the ends of variables' names.
OF_TEXTS = {
    "uniform": "uniform guess",
    "unigram": "{word} frequencies",
    "bigram": "bigrams",
    "best": BEST,
}
OF_MODEL = {
    "own_unigram": "its own {word} frequencies",
    "own_bigram": "its own bigrams",
}


@dataclass(frozen=True)
class LossCurve:
    """The ends of the loss, and what guesses and the best model cost in the end, by what they are.

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
    node = content.track_node
    if node is None or content.track is None:
        return None
    losses = content.track.values[np.isfinite(content.track.values)]
    costs = {name: _cost(node.dataset, name) for name in (*OF_TEXTS, *OF_MODEL)}
    levels = {name: cost for name, cost in costs.items() if math.isfinite(cost)}
    word = content.voice.word
    return LossCurve(
        title=content.track.title,
        units=content.track.units,
        first=float(losses[0]),
        last=float(losses[-1]),
        levels={
            OF_TEXTS[n].format(word=word): levels[n] for n in OF_TEXTS if n in levels
        },
        of_model={
            OF_MODEL[n].format(word=word): levels[n] for n in OF_MODEL if n in levels
        },
    )


def _cost(data: xr.Dataset, name: str) -> float:
    """Return what a guess costs at the last step; NaN where it was not measured, or runs differ."""
    cost = found_in(data, f"loss_{name}")
    if cost is None or not {*cost.dims} <= {"step", "run"}:
        return math.nan
    if "step" in cost.dims:
        cost = cost.dropna("step", how="all")
        if not cost.sizes["step"]:
            return math.nan
        cost = cost.isel(step=-1)
    values = np.unique(cost.values)
    return float(values[0]) if len(values) == 1 else math.nan


def control_curve(content: Content) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return the lower and upper ends of the control runs' loss at the steps of the loss."""
    node = content.track_node
    if node is None:
        return None
    curves: list[list[float]] = []
    for end in ("low", "high"):
        values = found_in(node.dataset, f"loss_control_{end}")
        if values is not None and values.dims == ("run", "step"):
            values = values.min("run") if end == "low" else values.max("run")
        if values is None or values.dims != ("step",):
            return None
        curves.append(values.values.astype(float).tolist())
    return curves[0], curves[1]
