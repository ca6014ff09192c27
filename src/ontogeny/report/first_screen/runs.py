"""The first screen of several runs, and the curves and lines that the first picture draws."""

from __future__ import annotations

import math

import numpy as np

from ...words.content import Content
from ...words.controls import explained
from ...words.formats import number, of_tokens, plural, sentence_start
from ...words.landmarks import LINES, LossStory, read_loss, track_node
from ...words.loss import Sentence, control_loss
from .numbers import Figure, audit_number
from .screen import FirstScreen, shortened


def first_of_runs(content: Content) -> FirstScreen | None:
    """Return what several runs show together, over the losses of all of them."""
    loss, stated = read_loss(content), content.headline
    if not stated or loss is None or len(content.steps) < 2:
        return None
    sentences = [
        Sentence(f"{lead.rstrip('.')}.", text)
        for lead, _, text in (str(s).partition(". ") for s in (stated["lead"], *stated["details"]))
        if lead.rstrip(".") != str(stated["heading"]).rstrip(".")
    ]
    if controls := explained(content):
        went = control_loss(loss)
        text = f"{controls} {sentence_start(went)}." if went else controls
        sentences = [*sentences[:3], Sentence("Control runs show what motion alone does.", text)]
    heading = str(stated["heading"])
    was = f"mean loss of {plural(len(run_curves(content)), 'run')}, was {number(loss.first, 0.1)}"
    numbers = (Figure(number(loss.last, 0.1), was), audit_number(content))
    return FirstScreen(heading, shortened(heading, sentences[:4]), numbers, loss, None)


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
            levels[of_tokens(words, content.token_unit)] = float(line[0])
    return {words: level for words, level in levels.items() if math.isfinite(level)}
