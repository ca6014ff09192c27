"""Abilities of a page: groups of examples with a right answer, and what is claimed of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from ..claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ..multiple_tests import holm
from ..trees import Nodes, found_in
from .formats import plain_text

_VARIABLES = {
    "accuracy": "accuracy_last",
    "low": "accuracy_last_low",
    "high": "accuracy_last_high",
    "low_here": "accuracy_here_low",
    "first": "accuracy_first",
    "reach": "accuracy_reach",
    "ngrams": "accuracy_ngrams",
    "liking": "liking",
    "above_from": "above_from",
    "above_from_low": "above_from_low",
    "change_low": "change_low",
    "change_high": "change_high",
    "clusters": "clusters",
    "examples": "examples",
    "p_smallest": "p_chance_smallest",
}
LEVEL = 0.05  # over all groups of the page


@dataclass(frozen=True)
class Ability:
    """One group at the end of a run; NaN where a number is not known.

    ``last_step`` is the last one at which its accuracy is known. ``gained`` and ``lost`` are of the
    first step against the last, paired over examples and with clusters as the units, and of a group
    that is above chance afterwards or was before. ``on_these`` is whether it changed on the
    examples that were asked, while that is not shown of others. ``low`` and ``high`` are NaN of one
    cluster; ``low_here`` is the lower end on these examples alone, and ``p_smallest`` the p-value
    against chance if all of them were right. ``reach`` is the largest accuracy that chance reaches in
    5 %: what is above chance is above it. From ``left_from`` on the accuracy stays outside of its
    interval at the first step, on the side on which it ends.
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
    left_from: float
    reach: float
    ngrams: float
    liking: float
    above_from: float
    above_from_low: float
    change_low: float
    change_high: float
    clusters: float
    examples: float
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

    def before(self, other: Ability) -> bool:
        """Return whether it left chance before another did, with intervals that are apart."""
        return other.above_from_low >= self.above_from < other.above_from < math.inf


def has_abilities(data: xr.Dataset) -> bool:
    """Return whether a node holds groups with an accuracy that was held against chance."""
    return "p_chance" in data and "run" not in data.accuracy.dims


def abilities_of(nodes: Nodes) -> list[Ability]:
    """Return the groups of all nodes in the order in which they leave chance, best first of equals.

    Verdicts are corrected over all groups (Holm), and not over those of one node.

    Parameters
    ----------
    nodes
        Datasets by the name that `Ability.node` gives again.
    """
    pairs: list[tuple[str, xr.Dataset]] = []
    for name, data in nodes.items():
        if has_abilities(data):
            pairs += [
                (name, data.isel(group=place)) for place in range(data.sizes["group"])
            ]
    above = holm([float(group.p_chance) for _, group in pairs]) <= LEVEL
    changed, on_these = (
        holm([float(found_in(group, name, math.nan)) for _, group in pairs]) <= LEVEL
        for name in ("p_change", "accuracy_p_changed")
    )
    verdicts = zip(above.tolist(), changed.tolist(), on_these.tolist(), strict=True)
    some = [
        _ability(*pair, of_one) for pair, of_one in zip(pairs, verdicts, strict=True)
    ]
    return sorted(some, key=_order)


def _order(ability: Ability) -> tuple[float, float]:
    since = ability.above_from
    return (since if math.isfinite(since) else math.inf, -ability.accuracy)


def _ability(
    node: str, group: xr.Dataset, verdicts: tuple[bool, bool, bool]
) -> Ability:
    above, changed, on_these = verdicts
    values: dict[str, Any] = {
        field: float(found_in(group, name, math.nan))
        for field, name in _VARIABLES.items()
    }
    rose = values["accuracy"] > values["first"]
    fell = values["accuracy"] < values["first"]
    gained = changed and rose and above
    lost = changed and fell and bool(found_in(group, "above_chance_first", False))
    if not above:
        values["above_from"] = math.nan
    control = found_in(
        group, "accuracy_control", xr.DataArray([[]], dims=("run", "step"))
    )
    at_end = control.dropna("step", how="any").isel(step=slice(-1, None)).values.ravel()
    course = group.accuracy.dropna("step")
    at = course.step.values
    first_low, first_high = (
        float(group[name].sel(step=at[0])) if name in group and len(at) else math.nan
        for name in ("accuracy_low", "accuracy_high")
    )
    return Ability(
        name=plain_text(group.group.item()),
        node=node,
        controls=tuple(map(float, at_end)),
        last_step=int(at[-1] if len(at) else group.step.values[-1]),
        above=above,
        gained=gained,
        lost=lost,
        on_these=on_these and not changed,
        left_from=_left_from(course, first_low, first_high),
        **values,
    )


def example_of(data: xr.Dataset, group: str) -> tuple[str, ...]:
    """Return a short example of a group that is right at the end, and its wrong text if a pair.

    Preferred are those that were wrong at first. Empty where none is kept.
    """
    if "right" not in data:
        return ()
    (dim,) = (str(dim) for dim in data.right.dims if dim != "step")
    texts = texts_of(data)
    right = data.right.dropna("step", how="any").transpose("step", dim).values
    if not texts or not len(right):
        return ()
    names = map(str, data[f"group_of_{dim}"].values)
    of_group = np.array([name == group for name in names], dtype=bool)
    places = np.flatnonzero(of_group & (right[-1] == 1))
    order = sorted(places, key=lambda i: (right[0][i] == 1, len(str(texts[0][i]))))
    return tuple(plain_text(side[order[0]]) for side in texts) if order else ()


def texts_of(data: xr.Dataset) -> list[np.ndarray]:
    """Return the right and the wrong texts of pairs, or questions with their right answers."""
    if "right_text" in data and "wrong_text" in data:
        return [data.right_text.values, data.wrong_text.values]
    if "prompt" not in data or "answer_text" not in data:
        return []
    answers = data.answer_text.values
    if "right_answer" in data:
        answers = answers[data.right_answer.values.astype(int)]
    return [data.prompt.values + " " + answers]


def _left_from(course: xr.DataArray, low: float, high: float) -> float:
    """Return the step from which on accuracies stay beyond an interval, on the side of the last."""
    values = course.values.astype(float)
    outside = values > high if len(values) and values[-1] > high else values < low
    since = len(values) - int(np.cumprod(outside[::-1]).sum())
    return float(course.step.values[since]) if since < len(values) else math.nan


def claims_of_abilities(nodes: Nodes) -> list[Claim]:
    """Return what is claimed of each group: above chance, gained, lost, changed on its examples."""
    abilities = abilities_of(nodes)
    claims = (_claims(ability, len(abilities)) for ability in abilities)
    return list(chain.from_iterable(claims))


def _claims(one: Ability, tests: int) -> Iterator[Claim]:
    more: dict[str, Any] = {
        "subject": Subject(one.node, "accuracy", label=one.name),
        "corrected_over": tests,
        "evidence": (f"{one.node}/accuracy", f"{one.node}/p_chance"),
        "figure": f"{one.node}/groups",
        "beside": tuple(_beside(one)),
    }
    yield Claim(Kind.ABOVE_CHANCE, **more, **_above_chance(one))
    ends: dict[str, Any] = {
        "first": one.first,
        "last": one.accuracy,
        "since": one.left_from,
    }
    ends["value"] = one.accuracy - one.first
    if one.gained or one.lost:
        kind = Kind.GAINED if one.gained else Kind.LOST
        sure: dict[str, Any] = {"certainty": Certainty.SURE}
        if one.gained and one.by_words:
            sure = {"certainty": Certainty.OPEN, "reason": Reason.WORD_COUNTS}
        yield Claim(
            kind, **sure, **more, **ends, low=one.change_low, high=one.change_high
        )
    elif one.on_these:
        yield Claim(Kind.CHANGED_ON_ITEMS, certainty=Certainty.SURE, **more, **ends)


def _above_chance(one: Ability) -> dict[str, Any]:
    # The interval is over other contrasts, and the test on these: `reach` is what belongs to it.
    fields: dict[str, Any] = {"last": one.accuracy, "certainty": Certainty.OPEN}
    if one.above:
        dates = {"since_low": one.above_from_low, "since_high": one.above_from}
        sure = {"certainty": Certainty.SURE, "since": one.above_from}
        return {**fields, **sure, **dates}
    if one.needs:
        return {**fields, "reason": Reason.FEW_CONTRASTS, "needed": one.needs}
    is_one = one.p_smallest >= 1
    return {**fields, "reason": Reason.ONE_ANSWER if is_one else Reason.WITHIN_CHANCE}


def _beside(one: Ability) -> Iterator[Beside]:
    """Give what chance, word counts and control runs reach, and how many examples there are."""
    if math.isfinite(one.examples):
        yield Beside("whole", "examples", one.examples)
    if math.isfinite(one.reach):
        yield Beside("null", "chance", one.reach)
    for name, value in (("n-grams", one.ngrams), ("liking for words", one.liking)):
        if math.isfinite(value):
            yield Beside("reference", name, value)
    for number, value in enumerate(one.controls):
        yield Beside("control", f"control {number}", value)
