"""A study that keeps within a time: all its controls, and the checkpoints and texts that fit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..study import Study, make_study
from ..words.formats import plural
from .cost import SUMMARIES, Cost, estimate, to_fetch
from .fitting import FEW_CONTROLS

FEWEST_STEPS = 8  # of fewer, most rows are open
FEWEST_TEXTS = 20
_ROUNDS = 6  # of other texts, each timed: what they take is not proportional to them
_GROWTH = 12  # at most, from one trial to the next
_CLOSE = 1.2  # as many texts more may fit untried
_WORTH = 2  # times the texts of the trial before, of which another one tells more
_TRIALS = 0.1  # of the budget, which trials may take after the first


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
    whole = _texts_of(make_study(content, folder))
    fixed = "max_texts" not in content.get("inputs", {})
    # With all 541 texts of a model of 135 million parameters, the trial alone took longer than its
    # ten minutes.
    texts = whole if fixed else min(whole, FEWEST_TEXTS)
    timed: list[_Timed] = []
    spent = 0.0
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        tried = content if texts == whole else _with_texts(content, texts)
        cost = estimate(tried, folder, fetched, sampled=True)
        if cost.why_not:
            return Within(content, cost, [])
        timed.append(_Timed(tried, cost, workers(cost)))
        measured = [one.whole for one in timed]
        more = whole if fixed else min(whole, _texts_that_fit(measured, seconds))
        close = texts <= more <= _CLOSE * texts and more < whole
        if more == texts or (timed[-1].least <= seconds and close):
            break
        took = time.perf_counter() - begun
        spent += took
        # The trials of a model of 135 million parameters took two thirds of ten minutes.
        bearable = int((_TRIALS * seconds - spent) / max(took, 1e-9) * texts)
        if bearable < more and bearable < _WORTH * texts:
            timed.append(_untried(measured, more, _with_texts(content, more)))
            break
        texts = min(more, bearable)
    fitting = [one for one in timed if one.least <= seconds]
    if not fitting:
        raise ArgumentError(_too_little(min(timed, key=lambda one: one.cost.texts)))
    most = max(fitting, key=lambda one: one.cost.texts)
    return most.within(seconds, whole, folder)


class _Timed(NamedTuple):
    """A study that was timed, and how many processes compute it.

    `timed_texts` are those of the trial that its time was scaled from, None where it had its own.
    """

    content: Mapping[str, Any]
    cost: Cost
    workers: int
    timed_texts: int | None = None

    @property
    def fewest(self) -> Cost:
        """What it takes with as few checkpoints as may be."""
        *_, fewest = (self.cost, *_fewer(self.content, self.cost))
        return fewest

    @property
    def least(self) -> float:
        """The seconds of that."""
        return self.fewest.seconds_with(self.workers)

    @property
    def whole(self) -> _Timed:
        """The same before anything of it was computed: of other texts, nothing is there."""
        seconds = self.cost.seconds + SUMMARIES * self.cost.kept
        return self._replace(cost=replace(self.cost, seconds=seconds, kept=0.0))

    def within(self, seconds: float, whole: int, folder: Path) -> Within:
        """Return it with as many checkpoints as some seconds allow; it has `whole` texts in all."""
        most = next(
            cost
            for cost in (self.cost, *_fewer(self.content, self.cost))
            if cost.seconds_with(self.workers) <= seconds
        )
        content = self.content
        if most is not self.cost:
            content = _with_steps(content, most.checkpoints)
            most = _of_fewer(self.cost, most, content, folder)
        return Within(content, most, self._cut(most, whole))

    def _cut(self, taken: Cost, whole: int) -> list[str]:
        """Say what is left of its checkpoints, and of all texts."""
        checkpoints = self.cost.checkpoints
        cut = []
        if taken.checkpoints < checkpoints:
            cut.append(f"{taken.checkpoints:,} of {plural(checkpoints, 'checkpoint')}")
        if taken.texts < whole:
            cut.append(f"{taken.texts:,} of {plural(whole, 'text')}")
        parts = [f"{' and '.join(cut)}; all controls"] if cut else []
        if self.timed_texts is not None:
            parts.append(
                f"its time is scaled from {plural(self.timed_texts, 'text')}, as trials may take a "
                "tenth of the budget"
            )
        return ["; ".join(parts)] if parts else []


def _texts_of(study: Study) -> int:
    return len(next(iter(study.inputs.values())))


def _texts_that_fit(timed: list[_Timed], seconds: float) -> int:
    """Return how many texts may fit, on a line through the last two trials.

    After the first it goes through what does not grow with texts.
    """
    last = timed[-1]
    texts = last.cost.texts
    took = last.least
    each = _seconds_of_a_text(timed)
    fits = texts + (seconds - took) / each if each > 0 else math.inf
    return int(min(max(fits, FEWEST_TEXTS), _GROWTH * texts))


def _seconds_of_a_text(timed: list[_Timed]) -> float:
    """Return what one text more adds to the least, on the same line."""
    last = timed[-1]
    texts = last.cost.texts
    took = last.least
    # What processes take to start and end is there without texts.
    ends = _ends(last)
    start = (0, ends + last.cost.fixed * (took - ends))
    if len(timed) > 1 and timed[-2].cost.texts != texts:
        start = (timed[-2].cost.texts, timed[-2].least)
    return (took - start[1]) / (texts - start[0])


def _ends(timed: _Timed) -> float:
    """Return the seconds of the least that are there without any checkpoint."""
    return timed.least - timed.fewest.seconds / timed.workers


def _untried(timed: list[_Timed], texts: int, content: Mapping[str, Any]) -> _Timed:
    """Return a study of other texts, its time on the line through the trials."""
    last = timed[-1]
    more = _seconds_of_a_text(timed) * (texts - last.cost.texts)
    of_cells = last.least - _ends(last)
    factor = max(0.0, 1 + more / of_cells) if of_cells > 0 else 1.0
    cost = _scaled(last.cost, factor, texts)
    return _Timed(content, cost, last.workers, last.cost.texts)


def _scaled(cost: Cost, factor: float, texts: int) -> Cost:
    """Return the cost with its times multiplied, of which no cell can be kept."""
    fewer = cost.fewer
    return replace(
        cost,
        seconds=factor * cost.seconds,
        at_one=factor * cost.at_one,
        texts=texts,
        fewer=None
        if fewer is None
        else lambda count: _scaled(fewer(count), factor, texts),
        keep=None,
        kept=0.0,
    )


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


def _too_little(timed: _Timed) -> str:
    """Return how long the least takes that was tried."""
    texts = plural(timed.cost.texts, "text")
    least = f"{plural(timed.fewest.checkpoints, 'checkpoint')} and {texts}"
    minutes = plural(math.ceil(timed.least / 60), "minute")
    has_many = timed.content.get("controls", {}).get("count", 0) > FEW_CONTROLS
    fewer = f" or fewer controls (--set controls.count={FEW_CONTROLS})"
    return (
        f"--budget is too little: {least} take about {minutes}; give more,"
        f" another --preset{fewer if has_many else ''}."
    )
