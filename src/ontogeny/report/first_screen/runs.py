"""The first screen of several runs, and what the script of the first picture draws."""

from __future__ import annotations

import math
from typing import Any

from ...words.content import Content
from ...words.formats import number
from ...words.landmarks import control_curve
from .screen import FirstScreen


def run_curves(content: Content) -> list[list[float]]:
    """Return the loss of each run of a comparison at the steps of their mean."""
    node = content.track_node
    if node is None or content.track is None or "run" not in node.dataset["loss"].dims:
        return []
    losses = (
        node.dataset["loss"].transpose("run", "step").reindex(step=content.track.steps)
    )
    return losses.values.astype(float).tolist()


def build_first(content: Content, first: FirstScreen) -> dict[str, Any]:
    """Return the arrays of the loss picture; the loss itself is the page's track."""
    loss = first.loss
    if loss is None or content.track is None:
        return {"lines": [], "control": None, "runs": []}
    lines = [
        {"words": words, "level": level, "text": f"{words} {number(level, 0.1)}"}
        for words, level in loss.levels.items()
    ]
    control = control_curve(content)
    curves = run_curves(content)
    return {
        "of": "mean" if curves else "run",
        "runs": [[finite(v) for v in curve] for curve in curves],
        "lines": lines,
        "control": None
        if control is None
        else [[finite(v) for v in end] for end in control],
        "control_name": "control" if len(content.controls) == 1 else "controls",
    }


def finite(value: float) -> float | None:
    """Return a number as JSON holds it, which has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None
