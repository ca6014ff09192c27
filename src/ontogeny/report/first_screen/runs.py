"""The first screen of several runs, and what the script of the first picture draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...words.content import Content
from ...words.controls import explained
from ...words.formats import number, plural, sentence_start, value_range
from ...words.landmarks import LINES, LossStory, control_curve, read_loss, track_node
from ...words.loss import Sentence, control_loss
from .numbers import Figure, audit_number
from .screen import FirstScreen, shortened


def first_of_runs(content: Content) -> FirstScreen | None:
    """Return what several runs show together, over the losses of all of them."""
    loss, stated, ends = read_loss(content), content.headline, _ends(content)
    if not stated or loss is None or not ends or len(content.steps) < 2:
        return None
    heading = str(stated["heading"])
    of_heading = f"{heading.rstrip('.')}."  # what follows the heading's sentence stays
    texts = (str(s).removeprefix(of_heading).strip() for s in (stated["lead"], *stated["details"]))
    further = list(filter(None, texts))
    sentences = [
        Sentence(f"{lead.rstrip('.')}.", text)
        for lead, _, text in (s.partition(". ") for s in further)
    ]
    controls = content.voice.fill(explained(content))
    count = 3 if controls else 4
    if controls:
        went = control_loss(loss)
        text = f"{controls} {sentence_start(went)}." if went else controls
        motion = Sentence("Control runs show what motion alone does.", text)
        sentences = [*sentences[:count], motion]
    first, last = (
        value_range(losses, lambda v: number(v, 0.1)) for losses in zip(*ends, strict=True)
    )
    was = f"loss of {plural(len(ends), 'run')}, was {first}"
    numbers = (Figure(last, was), audit_number(content))
    words = shortened(heading, sentences[:4])
    return FirstScreen(heading, words, numbers, loss, None, tuple(further[count:]))


def _ends(content: Content) -> list[tuple[float, float]]:
    """Return the first and the last loss of each run; their mean ends where the shortest does."""
    curves = [[v for v in curve if math.isfinite(v)] for curve in run_curves(content)]
    return [(curve[0], curve[-1]) for curve in curves if curve]


def run_curves(content: Content) -> list[list[float]]:
    """Return the loss of each run of a comparison at the steps of their mean."""
    node = track_node(content)
    if node is None or content.track is None or "run" not in node.dataset["loss"].dims:
        return []
    losses = node.dataset["loss"].transpose("run", "step").reindex(step=content.track.steps)
    return losses.values.astype(float).tolist()


def line_levels(content: Content, loss: LossStory) -> dict[str, float]:
    """Return the lines under the loss by what they are; of several runs those that all share."""
    levels = {"blind guess": loss.uniform} | {x.words: x.level for x in loss.lines.values()}
    node = track_node(content)
    for name, words in {"uniform": "blind guess", **LINES}.items():
        line = node.dataset.get(f"loss_{name}") if node else None
        if line is not None and line.dims == ("run",) and np.ptp(line.values) == 0:
            levels[content.voice.fill(words)] = float(line[0])
    return {words: level for words, level in levels.items() if math.isfinite(level)}


def build_first(content: Content, first: FirstScreen) -> dict[str, Any]:
    """Return the arrays of the loss picture; the loss itself is the page's track."""
    loss = first.loss
    if loss is None or content.track is None:
        return {"lines": [], "control": None, "runs": []}
    lines = [
        {"words": words, "level": level, "text": f"{words} {number(level, 0.1)}"}
        for words, level in line_levels(content, loss).items()
    ]
    control = control_curve(content)
    curves = run_curves(content)
    return {
        "of": "mean" if curves else "run",
        "runs": [[finite(v) for v in curve] for curve in curves],
        "lines": lines,
        "control": None if control is None else [[finite(v) for v in end] for end in control],
        "control_name": "control" if len(content.controls) == 1 else "controls",
    }


def finite(value: float) -> float | None:
    """Return a number as JSON holds it, which has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None
