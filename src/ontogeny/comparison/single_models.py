"""What a comparison of single models says: which predicts the texts better, and what each has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..summary.noise import mean_stderr
from ..words.content import Content, read_content
from ..words.formats import plural
from ..words.landmarks import read_loss
from ..words.loss import of_one_model
from ..words.one_model import alike
from ..words.sections import best_sentences
from .sources import Run


def single_models(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return heading, lead and details of models of one checkpoint each, None of other runs."""
    if any(len(run.steps) != 1 for run in runs):
        return None
    contents = {run.name: read_content(run.tree) for run in runs}
    losses = {n: of_one_model(loss) for n in contents if (loss := read_loss(contents[n]))}
    lead = " ".join(f"{name}: {loss.lead} {loss.text}".strip() for name, loss in losses.items())
    return {
        "heading": _better(runs) or f"{plural(len(runs), 'model')} side by side",
        "lead": lead or "Their loss was not measured; the sections show what was.",
        "details": _facts(contents),
    }


def _facts(contents: Mapping[str, Content]) -> list[str]:
    """Return the sentence that each model has of each section but the loss, sections together."""
    facts: dict[str, list[str]] = {}
    for name, content in contents.items():
        for title, text in best_sentences(content).items():
            facts.setdefault(title, []).append(f"{title}, {name}: {text}")
    return list(chain.from_iterable(facts.values()))


def _better(runs: Sequence[Run]) -> str:
    """Say which of the models predicts best, and whether surely better than the second best.

    The difference is that of each text, so that texts that are hard for both count little. Models
    of different tokens have no losses per token that could be held against each other.
    """
    nodes = {run.name: run.nodes["loss"].isel(step=0) for run in runs if "loss" in run.nodes}
    of_text = {name: node.get("loss_of_text") for name, node in nodes.items()}
    if len(nodes) < len(runs) or any(values is None for values in of_text.values()):
        return ""
    (first, one), (second, two) = sorted(nodes.items(), key=lambda pair: float(pair[1].loss))[:2]
    if not np.array_equal(one.loss_weights, two.loss_weights):
        return ""
    change = float(two.loss - one.loss)
    error = float(
        mean_stderr((two.loss_of_text - one.loss_of_text).values, one.loss_weights.values)
    )
    write = alike([float(two.loss)])
    ends = f"{write(float(one.loss))} nats against {write(float(two.loss))}"
    half = f"by {write(change)} ± {write(1.96 * error)}"
    if change > 1.96 * error:
        return f"{first} predicts these texts better than {second}: {ends}, {half}"
    return f"{first} and {second} are not shown to differ in their loss: {ends}, {half}"
