"""A study that keeps within a time: all its controls, and the checkpoints and texts that fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..study import make_study
from ..words.formats import plural
from .cost import Cost, estimate, to_fetch
from .fitting import FEW_CONTROLS

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
        count = workers(cost)
        if cost.why_not or cost.seconds_with(count) <= seconds:
            return Within(content, cost, _cut(first, cost))
        for fewer in _fewer(content, cost):
            if fewer.seconds_with(count) <= seconds:
                content = _with_steps(content, fewer.checkpoints)
                cost = _of_fewer(cost, fewer, content, folder)
                return Within(content, cost, _cut(first, cost))
            cost = replace(fewer, texts=cost.texts)
        ends = cost.seconds_with(count) - cost.seconds / count
        texts = int(cost.texts * (seconds - ends) * count / max(cost.seconds, 1e-9))
        if cost.texts <= FEWEST_TEXTS or "max_texts" not in content.get("inputs", {}):
            break
        content = _with_texts(
            _with_steps(content, cost.checkpoints), max(texts, FEWEST_TEXTS)
        )
        cost = estimate(content, folder, fetched)
    raise ArgumentError(_too_little(cost, content, workers(cost)))


def _fewer(content: Mapping[str, Any], cost: Cost) -> Iterator[Cost]:
    """Give the costs with fewer and fewer checkpoints; none where steps were named."""
    if cost.fewer is None or "steps" in content["trajectory"].get("select", {}):
        return
    for count in range(cost.checkpoints - 1, FEWEST_STEPS - 1, -1):
        yield cost.fewer(count)


def _with_steps(content: Mapping[str, Any], count: int) -> dict[str, Any]:
    table = content["trajectory"]
    select = table.get("select", {})
    if "steps" in select:
        return {**content}
    select = {"spacing": "log", **select, "count": count}
    return {**content, "trajectory": {**table, "select": select}}


def _with_texts(content: Mapping[str, Any], count: int) -> dict[str, Any]:
    return {**content, "inputs": {**content["inputs"], "max_texts": count}}


def _of_fewer(
    cost: Cost, fewer: Cost, content: Mapping[str, Any], folder: Path
) -> Cost:
    """Return the cost of the same study with fewer checkpoints, which was timed before."""
    study = make_study(content, folder)
    return replace(
        fewer,
        texts=cost.texts,
        fetched=min(cost.fetched, to_fetch(study.trajectory, bounded=True)),
        keep=None if cost.keep is None else partial(cost.keep, other=study),
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


def _too_little(cost: Cost, content: Mapping[str, Any], workers: int) -> str:
    """Return how long the least takes that was tried."""
    least = f"{plural(cost.checkpoints, 'checkpoint')} and {plural(cost.texts, 'text')}"
    minutes = plural(math.ceil(cost.seconds_with(workers) / 60), "minute")
    has_many = content.get("controls", {}).get("count", 0) > FEW_CONTROLS
    fewer = f" or fewer controls (--set controls.count={FEW_CONTROLS})"
    return (
        f"--budget is too little: {least} take about {minutes}; give more,"
        f" another --preset{fewer if has_many else ''}."
    )
