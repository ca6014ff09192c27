"""A study that keeps within a time: all its controls, and the checkpoints and texts that fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..study import make_study
from ..words.formats import plural
from .cost import Cost, estimate, to_fetch

FEWEST_STEPS = 8  # of fewer, most rows are open
FEWEST_TEXTS = 20
_ROUNDS = 4  # of fewer texts, each timed: what they take is not proportional to them


class Within(NamedTuple):
    """The content of a study file that keeps within a time, what it costs, and what was cut."""

    content: Mapping[str, Any]
    cost: Cost
    lines: list[str]


def within(
    content: Mapping[str, Any],
    folder: Path,
    fetched: int,
    seconds: float,
    workers: Callable[[Cost], int],
) -> Within:
    """Return the study with as many checkpoints, then as many texts, as some seconds allow.

    Controls stay, as verdicts need them. Fewer than 8 checkpoints and 20 texts are never taken, and
    of steps that were named none is left out.

    Parameters
    ----------
    content
        Of the study file.
    folder
        Where the study file is to stand.
    fetched
        Bytes that all of its checkpoints have to be fetched of.
    seconds
        From the first cell to the page.
    workers
        How many processes compute a study of some cost.

    Raises
    ------
    ArgumentError
        If the least takes longer; the message says how long.
    OntogenyError
        If the study cannot be made.
    """
    first = cost = estimate(content, folder, fetched)
    for _ in range(_ROUNDS):
        least = _fewest(content, cost)
        spare = (seconds - cost.seconds_with(workers(cost))) * workers(cost)
        if cost.why_not or spare >= 0:
            return Within(content, cost, _cut(first, cost))
        fewer = cost.checkpoints - math.ceil(-spare / cost.each)
        if fewer >= least:
            content = _with_steps(content, fewer)
            cost = _of_fewer(cost, content, folder, fewer)
            return Within(content, cost, _cut(first, cost))
        shortest = _seconds_of(cost, least, workers(cost))
        texts = int(cost.texts * seconds / shortest)
        if texts < FEWEST_TEXTS or "max_texts" not in content.get("inputs", {}):
            break
        content = _with_texts(_with_steps(content, least), texts)
        cost = estimate(content, folder, fetched)
    raise ArgumentError(_too_little(cost, _fewest(content, cost), workers(cost)))


def _fewest(content: Mapping[str, Any], cost: Cost) -> int:
    """Return the fewest checkpoints that are taken: all where steps were named."""
    is_named = "steps" in content["trajectory"].get("select", {})
    return cost.checkpoints if is_named else min(FEWEST_STEPS, cost.checkpoints)


def _seconds_of(cost: Cost, steps: int, workers: int) -> float:
    fewer = cost.checkpoints - steps
    return replace(cost, seconds=cost.seconds - fewer * cost.each).seconds_with(workers)


def _with_steps(content: Mapping[str, Any], count: int) -> dict[str, Any]:
    table = content["trajectory"]
    if "steps" in table.get("select", {}):
        return {**content}
    select = {"count": count, "spacing": "log"}
    return {**content, "trajectory": {**table, "select": select}}


def _with_texts(content: Mapping[str, Any], count: int) -> dict[str, Any]:
    return {**content, "inputs": {**content["inputs"], "max_texts": count}}


def _of_fewer(cost: Cost, content: Mapping[str, Any], folder: Path, steps: int) -> Cost:
    """Return the cost of the same study with fewer checkpoints, which was timed before."""
    study = make_study(content, folder)
    keep = None if cost.keep is None else partial(cost.keep, other=study)
    return replace(
        cost,
        checkpoints=steps,
        fetched=min(cost.fetched, to_fetch(study.trajectory, bounded=True)),
        stored=round(cost.stored * steps / cost.checkpoints),
        seconds=cost.seconds - (cost.checkpoints - steps) * cost.each,
        keep=keep,
    )


def _cut(first: Cost, cost: Cost) -> list[str]:
    """Say what a study has fewer of."""
    steps = f"{cost.checkpoints:,} of {plural(first.checkpoints, 'checkpoint')}"
    texts = f"{cost.texts:,} of {plural(first.texts, 'text')}"
    cut = [
        words
        for words, is_fewer in (
            (steps, cost.checkpoints < first.checkpoints),
            (texts, cost.texts < first.texts),
        )
        if is_fewer
    ]
    return [f"{' and '.join(cut)}; all controls"] if cut else []


def _too_little(cost: Cost, steps: int, workers: int) -> str:
    """Return how long the least takes that was tried."""
    minutes = math.ceil(_seconds_of(cost, steps, workers) / 60)
    return (
        f"--budget is too little: {plural(steps, 'checkpoint')} and {plural(cost.texts, 'text')} "
        f"take about {plural(minutes, 'minute')}; give more, --preset quick, or fewer controls "
        "(--set controls.count=2)."
    )
