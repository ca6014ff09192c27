"""Groups of examples along a run: intervals, chance, n-grams, the table and the sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...control_kinds import judging
from ...figures import Figure, Heatmap
from ...observables.crossing import leads_from
from ...summary.learning import p_by_luck
from .changes import Change, chance_of, p_on_these
from .contrasts import Ties
from .intervals import (
    LEVEL,
    Chance,
    GroupCourse,
    Z,
    above_chance,
    change_floor,
    course_of,
    first_known,
    share_interval,
)

# What is said of each group, beside its accuracy.
GROUP_NAMES = {
    "examples": ("number of examples", ""),
    "clusters": ("independent clusters of examples", ""),
    "accuracy_first": ("accuracy at the first {checkpoint}", "1"),
    "accuracy_last": ("accuracy at the last {checkpoint}", "1"),
    "accuracy_last_low": ("accuracy at the last {checkpoint}, lower end", "1"),
    "accuracy_last_high": ("accuracy at the last {checkpoint}, upper end", "1"),
    "accuracy_here_low": (
        "accuracy on these examples at the last {checkpoint}, lower end",
        "1",
    ),
    "liking": ("accuracy that a fixed liking for words would reach", "1"),
    "accuracy_reach": (
        "largest accuracy that chance reaches in 5 % at the last {checkpoint}",
        "1",
    ),
    "p_chance": ("p-value of the last {checkpoint} against chance", "1"),
    "p_chance_smallest": ("p-value against chance if all examples were right", "1"),
    "above_chance": (
        "above chance at the last {checkpoint}, corrected over groups",
        "",
    ),
    "above_chance_first": (
        "above chance at the first {checkpoint}, corrected over groups",
        "",
    ),
    "change_low": ("change from first to last {checkpoint}, lower end", "1"),
    "change_high": ("change from first to last {checkpoint}, upper end", "1"),
    "p_change": ("p-value of no change beyond these examples, by clusters", "1"),
    "p_turned": (
        "p-value of no change on these examples, by McNemar's exact test",
        "1",
    ),
    "accuracy_p_changed": ("p_turned, held against the moves between checkpoints", "1"),
    "accuracy_overall_p_changed": ("the same of the examples of all groups", "1"),
    "accuracy_p_learned": ("p-value of what was learned of the group", "1"),
    "right": ("whether the example is right", "1"),
    "cluster": ("independent cluster of the example", ""),
    "above_from": ("{checkpoint} from which on it stays above chance", "{step}s"),
    "above_from_low": (
        "last {checkpoint} before which it is not above chance",
        "{step}s",
    ),
}

# Over the examples of all groups: the chart folds groups that did not change into this row.
OVERALL = "accuracy_overall"

_CURVES = 6


def with_courses(
    data: xr.Dataset,
    right: np.ndarray,
    group: xr.DataArray,
    chance: np.ndarray,
    ngrams: xr.DataArray | None = None,
    dim: str = "pair",
) -> xr.Dataset:
    """Return a node with what is known of each group, in the order in which they leave chance.

    Parameters
    ----------
    data
        The node, with ``accuracy`` over step and group. Of pairs ``word_right`` and ``word_wrong``
        say which words stand against each other, of other examples ``cluster`` which go together.
    right
        (T, n) 1 where an example is right; NaN at steps that are missing.
    group
        (n,) the group of each example.
    chance
        (n,) the probability of each to be right by chance.
    ngrams
        (n,) whether n-grams are right.
    dim
        Dimension of the examples.
    """
    steps = data.step.values
    names = [str(label) for label in data.group.values]
    of_example = np.array([str(label) for label in group.values], dtype=object)
    groups = []
    for name in names:
        members = np.flatnonzero(of_example == name)
        by_chance = chance_of(data, dim, chance, members)
        course = course_of(steps, right[:, members], by_chance, len(names))
        level = math.nan if ngrams is None else float(ngrams.values[members].mean())
        groups.append(_Group(course, by_chance, right[:, members], level))
    data = data.assign(_variables(groups, steps))
    begin = leads_from(steps, np.where(np.isfinite(right), right == 1.0, np.nan))[0]
    data = data.assign(
        {**_ends(data), "right": (("step", dim), right), "right_from": (dim, begin)}
    )
    if len(names) > 1:
        every = chance_of(data, dim, chance, np.arange(right.shape[1]))
        data = data.assign(_overall(data, right, every))
    data = data.assign(_changes(data, groups))
    data = data.assign(_learned(data, groups))
    after = np.where(data.above_chance.values, data.above_from.values, np.inf)
    last = -data.accuracy_last.values
    return data.isel(group=np.lexsort((last, np.nan_to_num(after, nan=np.inf))))


@dataclass(frozen=True, eq=False)
class _Group:
    """The course of a group, how likely chance gives it, what is right, and what n-grams reach."""

    course: GroupCourse
    chance: Chance
    right: np.ndarray
    ngrams: float

    @property
    def liking(self) -> float:
        return self.chance.ties.liking if self.chance.of_words else math.nan

    @property
    def reach(self) -> float:
        """The largest share that chance reaches where the last one was measured."""
        known = self.right[np.isfinite(self.right).all(axis=1)]
        return self.chance.reach(known[-1]) if len(known) else math.nan

    @property
    def here(self) -> tuple[float, float]:
        """The interval of the last share that is right, over these examples alone."""
        known = self.right[np.isfinite(self.right).all(axis=1)]
        if not len(known):
            return math.nan, math.nan
        number = known.shape[1]
        low, high = share_interval(known[-1:], Ties.of_clusters(np.arange(number)))
        return float(low[0]), float(high[0])


def _variables(groups: Sequence[_Group], steps: np.ndarray) -> dict[str, Any]:
    over = ("step", "group")
    courses = [group.course for group in groups]
    p_values = np.array([course.p_ends[1] for course in courses])
    above = above_chance(p_values)
    at = {
        name: np.array([getattr(course, name) for course in courses])
        for name in ("above_from", "above_from_low")
    }
    is_learned = above & np.isfinite(at["above_from"])
    variables: dict[str, Any] = {
        **{
            f"accuracy_{end}": (
                over,
                np.stack([getattr(c, end) for c in courses], axis=1),
            )
            for end in ("low", "high", "floor")
        },
        "accuracy_chance": (
            "group",
            np.array([g.chance.of_example.mean() for g in groups]),
        ),
        "examples": ("group", np.array([g.right.shape[1] for g in groups])),
        "clusters": ("group", np.array([len(g.chance.ties.sizes) for g in groups])),
        "accuracy_here_low": ("group", np.array([g.here[0] for g in groups])),
        "accuracy_reach": ("group", np.array([g.reach for g in groups])),
        "p_chance": ("group", p_values),
        "p_chance_smallest": ("group", np.array([g.chance.smallest_p for g in groups])),
        "above_chance": ("group", above),
        **{
            name: ("group", np.where(is_learned, values, np.nan))
            for name, values in at.items()
        },
    }
    further = {
        "accuracy_ngrams": [g.ngrams for g in groups],
        "liking": [g.liking for g in groups],
    }
    known = {
        name: values for name, values in further.items() if np.isfinite(values).all()
    }
    return variables | {
        name: ("group", np.array(values)) for name, values in known.items()
    }


def _ends(data: xr.Dataset) -> dict[str, Any]:
    """Return the accuracy at the first and the last step that was measured."""
    complete = np.flatnonzero(
        np.isfinite(data.accuracy.transpose("step", "group")).all("group")
    )
    first, last = (complete[0], complete[-1]) if len(complete) else (0, -1)
    ends = {"first": ("", first), "last": ("", last)}
    ends |= {f"last_{end}": (f"_{end}", last) for end in ("low", "high")}
    return {
        f"accuracy_{name}": (
            "group",
            data[f"accuracy{of}"].isel(step=int(place)).values,
        )
        for name, (of, place) in ends.items()
    }


def _overall(data: xr.Dataset, right: np.ndarray, every: Chance) -> dict[str, Any]:
    """Return the accuracy over the examples of all groups, as a row of the chart."""
    low, high = share_interval(right, every.ties)
    names = [
        n
        for of in ("", "_chance", "_ngrams", "_control")
        if (n := f"accuracy{of}") in data
    ]
    means = data[names].weighted(data.examples).mean("group")
    return {
        f"{OVERALL}_low": ("step", low),
        f"{OVERALL}_high": ("step", high),
        f"{OVERALL}_floor": ("step", change_floor(right - first_known(right))),
        f"{OVERALL}_p_changed": ((), p_on_these(right)),
        **{name.replace("accuracy", OVERALL): means[name] for name in names},
    }


def _changes(data: xr.Dataset, groups: Sequence[_Group]) -> dict[str, Any]:
    """Return how sure the change of each group is from the first to the last step measured."""
    measured = [
        np.flatnonzero(np.isfinite(group.right).all(axis=1)) for group in groups
    ]
    if any(len(steps) < 2 for steps in measured):
        return {}
    changes = [
        Change.of(
            str(name), group.right[steps[0]], group.right[steps[-1]], group.chance
        )
        for name, group, steps in zip(data.group.values, groups, measured, strict=True)
    ]
    was_above = above_chance(np.array([change.p_before for change in changes]))
    numbers: dict[str, Any] = {
        "change_low": [change.low for change in changes],
        "change_high": [change.high for change in changes],
        "p_change": [change.p_value for change in changes],
        "p_turned": [change.p_turned for change in changes],
        "accuracy_p_changed": [p_on_these(group.right) for group in groups],
        "above_chance_first": was_above,
    }
    return {name: ("group", np.array(values)) for name, values in numbers.items()}


def _learned(data: xr.Dataset, groups: Sequence[_Group]) -> dict[str, Any]:
    """Return how likely each group ends so far above chance, and gained so much, by luck.

    The luck of examples, and that of motion, which two control runs or more show: of the group or
    of all groups, whichever is larger. Without them turned runs had a group that seemed learned on
    4 of 16 pages. What n-grams reach as well is learned, too: their level stands beside.
    """
    if "p_change" not in data or "accuracy_control" not in data:
        return {}
    ends = judging(data.accuracy_control).dropna("step", how="all")
    if not ends.sizes["step"]:
        return {}
    excess = data.accuracy_last - data.accuracy_chance
    rose = (data.accuracy_last > data.accuracy_first).values
    # What was not above chance gained all that it has; a change need not be sure as well.
    nothing = (
        np.array([not group.course.p_ends[0] <= LEVEL / 2 for group in groups]) & rose
    )
    gain = np.where(nothing, 0.0, np.where(rose, data.p_change.values / 2, 1.0))
    luck = (ends.isel(step=-1) - data.accuracy_chance).transpose("group", "run").values
    luck = luck[:, np.isfinite(luck).all(axis=0)]  # one that diverged shows no luck
    if luck.shape[1] < 2:
        return {}
    low, high = np.transpose([group.here for group in groups])
    texts = ((high - low) / (2 * Z)) ** 2
    of_group = (luck**2).mean(axis=1, keepdims=True)
    of_all = max((luck**2).mean(), 1e-9)
    spread = np.sqrt(np.fmax(of_group / of_all, 1.0)) * luck.ravel()
    p_values = [data.p_chance.values, gain, p_by_luck(excess.values, texts, spread)]
    # One example alone shows nothing.
    return {
        "accuracy_p_learned": (
            "group",
            np.nan_to_num(np.maximum.reduce(p_values), nan=1.0),
        )
    }


def group_figures(data: xr.Dataset) -> list[Figure]:
    """Return a map of the groups over the steps, where they are too many for curves."""
    if data.sizes.get("group", 0) <= _CURVES or data.sizes["step"] < 2:
        return []
    title = "Share that is right, groups in the order in which they leave chance"
    chance = data.accuracy_chance.values
    # Means over other numbers of examples are equal but for rounding.
    middle = float(chance[0]) if np.ptp(chance) < 1e-9 else None
    return [Heatmap("groups", title, value="accuracy", y="group", middle=middle)]
