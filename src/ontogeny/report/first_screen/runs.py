"""The first screen of several runs, and what the script of the first picture draws."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

from ...words.content import Content
from ...words.formats import number, plain_text
from ...words.landmarks import control_curve
from ..value_span import value_span
from .screen import FirstScreen


def run_curves(content: Content) -> dict[str, list[float]]:
    """Return the loss of each run of a comparison, by its name, at the steps of their mean."""
    node = content.track_node
    if node is None or content.track is None or "run" not in node.dataset["loss"].dims:
        return {}
    losses = (
        node.dataset["loss"].transpose("run", "step").reindex(step=content.track.steps)
    )
    names = map(plain_text, losses["run"].values)
    return dict(zip(names, losses.values.astype(float).tolist(), strict=True))


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
    is_named = bool(curves) and not content.seeds
    return {
        "title": _title_of_one(content) if is_named else content.track.title,
        "of": "mean" if curves else "run",
        "names": list(curves) if is_named else [],
        "runs": [[finite(v) for v in curve] for curve in curves.values()],
        "lines": lines,
        "control": None
        if control is None
        else [[finite(v) for v in end] for end in control],
        "span": value_span(
            chain(content.track.values, *curves.values()),
            chain(loss.levels.values(), *(control or ())),
        ),
        "control_name": "control" if len(content.controls) == 1 else "controls",
    }


def _title_of_one(content: Content) -> str:
    """Return the title of the loss of each run; the track is their mean."""
    node = content.track_node
    title = (
        "loss" if node is None else node.dataset["loss"].attrs.get("long_name", "loss")
    )
    return plain_text(title)


def finite(value: float) -> float | None:
    """Return a number as JSON holds it, which has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None
