"""Abilities of a page: groups of examples with a right answer, of whatever node, in one order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..multiple_tests import holm
from .content import Node
from .formats import joined, plain_text, plural, step_text

_VARIABLES = {
    "accuracy": "accuracy_last", "low": "accuracy_last_low", "high": "accuracy_last_high",
    "first": "accuracy_first", "ngrams": "accuracy_ngrams",
    "liking": "liking", "above_from": "above_from", "above_from_low": "above_from_low",
    "change_low": "change_low", "change_high": "change_high",
}  # fmt: skip
LEVEL = 0.05  # over all groups of the page


@dataclass(frozen=True)
class Ability:
    """One group at the end of a run; NaN where a number is not known.

    ``last_step`` is the last one at which its accuracy is known. ``gained`` and ``lost`` are of the
    first step against the last, paired over examples, and of a group that is above chance
    afterwards or was before. ``first_low`` and ``first_high`` are the interval at the first step;
    from ``left_from`` on the accuracy stays outside of it, on the side on which it ends.
    """

    name: str
    node: str
    controls: tuple[float, ...]
    last_step: int
    above: bool
    gained: bool
    lost: bool
    accuracy: float
    low: float
    high: float
    first: float
    first_low: float
    first_high: float
    left_from: float
    ngrams: float
    liking: float
    above_from: float
    above_from_low: float
    change_low: float
    change_high: float

    @property
    def by_words(self) -> bool:
        """Whether it is not shown to be more than what n-grams and single words answer.

        A liking for some words is no more than their frequency: texts in random order teach it.
        """
        return self.ngrams > self.low and not self.liking <= self.low

    @property
    def quoted(self) -> str:
        """Its name in a sentence."""
        return f"“{self.name}”"

    def before(self, other: Ability) -> bool:
        """Return whether it left chance before another did, with intervals that are apart."""
        return other.above_from_low >= self.above_from < other.above_from < math.inf


def has_abilities(data: xr.Dataset) -> bool:
    """Return whether a node holds groups with an accuracy that was held against chance."""
    return "p_chance" in data and "run" not in data.accuracy.dims


def abilities_of(nodes: Sequence[Node]) -> list[Ability]:
    """Return the groups of all nodes in the order in which they leave chance, best first of equals.

    Verdicts are corrected over all groups (Holm), and not over those of one node.
    """
    pairs = [
        (node, node.dataset.isel(group=place))
        for node in nodes
        if has_abilities(node.dataset)
        for place in range(node.dataset.sizes["group"])
    ]
    above = holm([float(group.p_chance) for _, group in pairs]) <= LEVEL
    changed = holm([float(group.get("p_change", math.nan)) for _, group in pairs]) <= LEVEL
    some = [
        _ability(*pair, *verdicts)
        for pair, *verdicts in zip(pairs, above.tolist(), changed.tolist(), strict=True)
    ]
    return sorted(some, key=_order)


def ability_sentences(abilities: Sequence[Ability], steps: Sequence[int]) -> list[str]:
    """Say how many groups are above chance at the end, which left it before which, and of n-grams.

    An order is said only where intervals are apart.
    """
    if not abilities:
        return []
    above = [ability for ability in abilities if ability.above]
    # Not the run's last step: that may hold NaN, and nothing is known of it.
    last = max(ability.last_step for ability in abilities)
    where = f"At step {last:,}," if len(steps) > 1 else "Of what was tried,"
    if not above:
        leader = f"the best is {abilities[0].quoted}, {percent(abilities[0])}"
        over = f"corrected over {plural(len(abilities), 'group')}"
        return [f"{where} no group is shown to be above chance, {over}; {leader}."]
    best, verb = max(above, key=lambda ability: ability.low), "is" if len(above) == 1 else "are"
    sentences = [
        f"{where} {len(above):,} of {plural(len(abilities), 'group')} {verb} above chance.",
        f"Best is {best.quoted}, {percent(best)}.",
        _order_sentence(above),
    ]
    alike = sum(ability.ngrams > ability.low for ability in above)
    if alike:
        sentences.append(f"In {alike:,} of these, n-grams of the texts are not shown to do worse.")
    return [text for text in sentences if text]


def percent(ability: Ability) -> str:
    """Return the accuracy at the end with its interval."""
    low, high, here = (100 * n for n in (ability.low, ability.high, ability.accuracy))
    return f"{here:.0f} % ({low:.0f} to {high:.0f})"


def _order_sentence(above: Sequence[Ability]) -> str:
    """Say which group left chance by when, and which others did not before that step."""
    first, later = above[0], [ability.quoted for ability in above if above[0].before(ability)]
    names = joined(later[:2] + [f"{len(later) - 2:,} more"] * (len(later) > 2))
    by = step_text(first.above_from)
    return f"{first.quoted} was above chance by step {by}, before {names}." if later else ""


def _order(ability: Ability) -> tuple[float, float]:
    since = ability.above_from
    return (since if math.isfinite(since) else math.inf, -ability.accuracy)


def _ability(node: Node, group: xr.Dataset, above: bool, changed: bool) -> Ability:
    values: dict[str, Any] = {
        field: float(group.get(name, math.nan)) for field, name in _VARIABLES.items()
    }
    rose, lasting = (
        values["accuracy"] - values["first"],
        bool(group.get("above_chance_first", False)),
    )
    if not above:
        values["above_from"] = math.nan
    control = group.get("accuracy_control", xr.DataArray([[]], dims=("run", "step")))
    at_end = control.dropna("step", how="any").isel(step=slice(-1, None)).values.ravel()
    course = group.accuracy.dropna("step")
    at = course.step.values
    ends = [float(group[n].sel(step=at[0])) if n in group and len(at) else math.nan
            for n in ("accuracy_low", "accuracy_high")]  # fmt: skip
    values |= {"first_low": ends[0], "first_high": ends[1]}
    values["left_from"] = _left_from(course, *ends)
    last_step = int(at[-1] if len(at) else group.step.values[-1])
    return Ability(
        *(plain_text(group.group.item()), node.id, tuple(map(float, at_end)), last_step, above),
        *(changed and rose > 0 and above, changed and rose < 0 and lasting),
        **values,
    )


def _left_from(course: xr.DataArray, low: float, high: float) -> float:
    """Return the step from which on accuracies stay beyond an interval, on the side of the last."""
    values = course.values.astype(float)
    outside = values > high if len(values) and values[-1] > high else values < low
    since = len(values) - int(np.cumprod(outside[::-1]).sum())
    return float(course.step.values[since]) if since < len(values) else math.nan
