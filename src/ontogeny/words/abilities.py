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
    "accuracy": "accuracy_last",
    "low": "accuracy_last_low",
    "high": "accuracy_last_high",
    "low_here": "accuracy_here_low",
    "first": "accuracy_first",
    "ngrams": "accuracy_ngrams",
    "liking": "liking",
    "above_from": "above_from",
    "above_from_low": "above_from_low",
    "change_low": "change_low",
    "change_high": "change_high",
    "clusters": "clusters",
    "p_smallest": "p_chance_smallest",
}
LEVEL = 0.05  # over all groups of the page

NOT_BEYOND = "Of other examples of their kind that is not shown."
_NAMED = 3


@dataclass(frozen=True)
class Ability:
    """One group at the end of a run; NaN where a number is not known.

    ``last_step`` is the last one at which its accuracy is known. ``gained`` and ``lost`` are of the
    first step against the last, paired over examples and with clusters as the units, and of a group
    that is above chance afterwards or was before. ``on_these`` is whether it changed on the
    examples that were asked, while that is not shown of others. ``low`` and ``high`` are NaN of one
    cluster; ``low_here`` is the lower end on these examples alone, and ``p_smallest`` the p-value
    against chance if all of them were right. ``first_low`` and ``first_high`` are the interval at
    the first step; from ``left_from`` on the accuracy stays outside of it, on the side on which it
    ends.
    """

    name: str
    node: str
    controls: tuple[float, ...]
    last_step: int
    above: bool
    gained: bool
    lost: bool
    on_these: bool
    accuracy: float
    low: float
    high: float
    low_here: float
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
    clusters: float
    p_smallest: float

    @property
    def alike(self) -> bool:
        """Whether n-grams are not shown to do worse on these examples."""
        return self.ngrams > self.low_here

    @property
    def by_words(self) -> bool:
        """Whether it is not shown to be more than what n-grams and single words answer.

        A liking for some words is no more than their frequency: texts in random order teach it.
        """
        return self.alike and not self.liking <= self.low_here

    @property
    def rose(self) -> bool:
        """Whether it ends higher than it began."""
        return self.accuracy > self.first

    @property
    def cluster(self) -> str:
        """What its independent clusters of examples are called."""
        return "contrast" if math.isfinite(self.liking) else "independent example"

    @property
    def needs(self) -> int:
        """How many clusters above chance takes, where it has too few; else 0."""
        if self.above or not self.p_smallest > LEVEL:
            return 0
        of_one = math.log(self.p_smallest) / self.clusters if self.clusters > 0 else 0.0
        return math.ceil(math.log(LEVEL) / of_one) if of_one < 0 else 0

    @property
    def too_few(self) -> str:
        """Why nothing can be said of it by its number of clusters; empty where that is enough."""
        if self.needs:
            has = f"{self.clusters:,.0f}"
            return f"open: {plural(self.needs, self.cluster)} are needed, and it has {has}"
        if not self.above and self.p_smallest >= 1:
            return "open: one answer is right everywhere"
        return ""

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
    changed, on_these = (
        holm([float(group.get(name, math.nan)) for _, group in pairs]) <= LEVEL
        for name in ("p_change", "accuracy_p_changed")
    )
    verdicts = zip(above.tolist(), changed.tolist(), on_these.tolist(), strict=True)
    some = [_ability(*pair, of_one) for pair, of_one in zip(pairs, verdicts, strict=True)]
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
    where = f"At {{step}} {last:,}," if len(steps) > 1 else "Of what was tried,"
    further = [_too_few_sentence(abilities), on_these_sentence(abilities)]
    if not above:
        leader = f"the best is {abilities[0].quoted}, {percent(abilities[0])}"
        over = f"corrected over {plural(len(abilities), 'group')}"
        lead = f"{where} no group is shown to be above chance, {over}; {leader}."
        return [lead, *filter(None, further)]
    best, verb = max(above, key=_lowest), "is" if len(above) == 1 else "are"
    sentences = [
        f"{where} {len(above):,} of {plural(len(abilities), 'group')} {verb} above chance.",
        f"Best is {best.quoted}, {percent(best)}.",
        _order_sentence(above),
    ]
    alike = sum(ability.alike for ability in above)
    if alike:
        sentences.append(f"In {alike:,} of these, n-grams of the texts are not shown to do worse.")
    return [text for text in [*sentences, *further] if text]


def _lowest(ability: Ability) -> tuple[float, float]:
    """Return the lower end of an accuracy, and the accuracy; those without an interval last."""
    return (ability.low if math.isfinite(ability.low) else -1.0, ability.accuracy)


def percent(ability: Ability) -> str:
    """Return the accuracy at the end with its interval."""
    here = f"{100 * ability.accuracy:.0f} %"
    if not math.isfinite(ability.low):
        return f"{here} (one {ability.cluster}, no interval)"
    return f"{here} ({100 * ability.low:.0f} to {100 * ability.high:.0f})"


def _too_few_sentence(abilities: Sequence[Ability]) -> str:
    """Say how many groups have too few contrasts for a verdict, and how many it takes."""
    some = [ability for ability in abilities if ability.needs]
    if not some:
        return ""
    most = max(some, key=lambda ability: ability.needs)
    apart = " that share no word" if most.cluster == "contrast" else ""
    needed = f"{plural(most.needs, most.cluster)}{apart}"
    have = "group has" if len(some) == 1 else "groups have"
    return f"{len(some):,} {have} too few for a verdict: {needed} are needed."


def on_these_sentence(abilities: Sequence[Ability]) -> str:
    """Say which groups changed on their examples alone, and by which test."""
    some = [ability for ability in abilities if ability.on_these]
    if not some:
        return ""
    named = [
        f"{a.quoted} from {100 * a.first:.0f} to {100 * a.accuracy:.0f} %" for a in some[:_NAMED]
    ]
    more = [f"{len(some) - _NAMED:,} more"] * (len(some) > _NAMED)
    by = "exact test of the examples that turned"
    return f"Changed on these examples ({by}): {joined([*named, *more])}. {NOT_BEYOND}"


def _order_sentence(above: Sequence[Ability]) -> str:
    """Say which group left chance by when, and which others did not before that step."""
    first, later = above[0], [ability.quoted for ability in above if above[0].before(ability)]
    names = joined(later[:2] + [f"{len(later) - 2:,} more"] * (len(later) > 2))
    by = step_text(first.above_from)
    return f"{first.quoted} was above chance by {{step}} {by}, before {names}." if later else ""


def _order(ability: Ability) -> tuple[float, float]:
    since = ability.above_from
    return (since if math.isfinite(since) else math.inf, -ability.accuracy)


def _ability(node: Node, group: xr.Dataset, verdicts: tuple[bool, bool, bool]) -> Ability:
    above, changed, on_these = verdicts
    values: dict[str, Any] = {
        field: float(group.get(name, math.nan)) for field, name in _VARIABLES.items()
    }
    rose = values["accuracy"] > values["first"]
    fell = values["accuracy"] < values["first"]
    gained = changed and rose and above
    lost = changed and fell and bool(group.get("above_chance_first", False))
    if not above:
        values["above_from"] = math.nan
    control = group.get("accuracy_control", xr.DataArray([[]], dims=("run", "step")))
    at_end = control.dropna("step", how="any").isel(step=slice(-1, None)).values.ravel()
    course = group.accuracy.dropna("step")
    at = course.step.values
    first_low, first_high = (
        float(group[name].sel(step=at[0])) if name in group and len(at) else math.nan
        for name in ("accuracy_low", "accuracy_high")
    )
    return Ability(
        name=plain_text(group.group.item()),
        node=node.id,
        controls=tuple(map(float, at_end)),
        last_step=int(at[-1] if len(at) else group.step.values[-1]),
        above=above,
        gained=gained,
        lost=lost,
        on_these=on_these and not changed,
        first_low=first_low,
        first_high=first_high,
        left_from=_left_from(course, first_low, first_high),
        **values,
    )


def _left_from(course: xr.DataArray, low: float, high: float) -> float:
    """Return the step from which on accuracies stay beyond an interval, on the side of the last."""
    values = course.values.astype(float)
    outside = values > high if len(values) and values[-1] > high else values < low
    since = len(values) - int(np.cumprod(outside[::-1]).sum())
    return float(course.step.values[since]) if since < len(values) else math.nan
