"""Groups of examples along a run: intervals, chance, n-grams, the table and the sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Figure, Heatmap
from ...observables.crossing import leads_from
from ...summary.learning import p_by_luck
from ...words.control_kinds import NO_NULLS, kind_of
from ...words.formats import joined
from .changes import group_changes
from .intervals import GroupCourse, Z, above_chance, course_of
from .pairs import liking

# What is said of each group, beside its accuracy.
GROUP_NAMES = {
    "examples": ("number of examples", ""),
    "accuracy_first": ("accuracy at the first step", "1"),
    "accuracy_last": ("accuracy at the last step", "1"),
    "accuracy_last_low": ("accuracy at the last step, lower end", "1"),
    "accuracy_last_high": ("accuracy at the last step, upper end", "1"),
    "liking": ("accuracy that a fixed liking for words would reach", "1"),
    "p_chance": ("p-value of the last step against chance", "1"),
    "above_chance": ("above chance at the last step, corrected over groups", ""),
    "above_chance_first": ("above chance at the first step, corrected over groups", ""),
    "change_low": ("change from first to last step, lower end", "1"),
    "change_high": ("change from first to last step, upper end", "1"),
    "p_change": ("p-value of no change, by the sign test of examples that turned", "1"),
    "accuracy_p_learned": ("p-value of what was learned of the group", "1"),
    "right": ("whether the example is right", "1"),
    "above_from": ("step from which on it stays above chance", "steps"),
    "above_from_low": ("last step before which it is not above chance", "steps"),
}

# Over the examples of all groups: the chart folds groups that did not change into this row.
OVERALL = "accuracy_overall"

_NAMED = 3
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
        The node, with ``accuracy`` over step and group.
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
    steps, names = data.step.values, [str(label) for label in data.group.values]
    of_example = np.array([str(label) for label in group.values], dtype=object)
    contrast = data.contrast.values if "contrast" in data else np.arange(right.shape[1])
    courses, numbers = [], []
    for name in names:
        members = np.flatnonzero(of_example == name)
        course = course_of(steps, right[:, members], contrast[members], chance[members], len(names))
        courses.append(course)
        likes = math.nan
        if "turned_contrast" in data:
            likes = liking(contrast[members], data.turned_contrast.values[members])
        level = math.nan if ngrams is None else float(ngrams.values[members].mean())
        numbers.append((len(members), likes, level, float(chance[members].mean())))
    data = data.assign(_variables(courses, np.array(numbers, dtype=float), steps))
    begin = leads_from(steps, np.where(np.isfinite(right), right == 1.0, np.nan))[0]
    data = data.assign({**_ends(data), "right": (("step", dim), right), "right_from": (dim, begin)})
    if len(names) > 1:
        data = data.assign(_overall(data, course_of(steps, right, contrast, chance)))
    data = data.assign(_changes(data, right))
    data = data.assign(_learned(data))
    after = np.where(data.above_chance.values, data.above_from.values, np.inf)
    last = -data.accuracy_last.values
    return data.isel(group=np.lexsort((last, np.nan_to_num(after, nan=np.inf))))


def _variables(
    courses: Sequence[GroupCourse], numbers: np.ndarray, steps: np.ndarray
) -> dict[str, Any]:
    count, likes, level, chance = numbers.T
    over = ("step", "group")
    p_values = np.array([course.p_value for course in courses])
    above = above_chance(p_values)
    at = {
        name: np.array([getattr(c, name) for c in courses])
        for name in ("above_from", "above_from_low")
    }
    is_learned = above & np.isfinite(at["above_from"])
    variables: dict[str, Any] = {
        "accuracy_low": (over, np.stack([c.low for c in courses], axis=1)),
        "accuracy_high": (over, np.stack([c.high for c in courses], axis=1)),
        "accuracy_floor": (over, np.stack([c.floor for c in courses], axis=1)),
        "accuracy_chance": ("group", chance),
        "examples": ("group", count.astype(np.int64)),
        "p_chance": ("group", p_values),
        "above_chance": ("group", above),
        **{name: ("group", np.where(is_learned, values, np.nan)) for name, values in at.items()},
    }
    if np.isfinite(level).all():
        variables["accuracy_ngrams"] = ("group", level)
    if np.isfinite(likes).any():
        variables["liking"] = ("group", likes)
    return variables


def _ends(data: xr.Dataset) -> dict[str, Any]:
    """Return the accuracy at the first and the last step that was measured."""
    complete = np.flatnonzero(np.isfinite(data.accuracy.transpose("step", "group")).all("group"))
    first, last = (complete[0], complete[-1]) if len(complete) else (0, -1)
    ends = {"first": ("", first), "last": ("", last)}
    ends |= {f"last_{end}": (f"_{end}", last) for end in ("low", "high")}
    return {
        f"accuracy_{name}": ("group", data[f"accuracy{of}"].isel(step=int(place)).values)
        for name, (of, place) in ends.items()
    }


def _overall(data: xr.Dataset, course: GroupCourse) -> dict[str, Any]:
    """Return the accuracy over the examples of all groups, as a row of the chart."""
    noise = {end: ("step", getattr(course, end)) for end in ("low", "high", "floor")}
    names = [n for of in ("", "_chance", "_ngrams", "_control") if (n := f"accuracy{of}") in data]
    means = data[names].weighted(data.examples).mean("group")
    return {f"{OVERALL}_{end}": values for end, values in noise.items()} | {
        name.replace("accuracy", OVERALL): means[name] for name in names
    }


def _changes(data: xr.Dataset, right: np.ndarray) -> dict[str, Any]:
    """Return how sure the change of each group is from the first to the last step measured."""
    measured = np.flatnonzero(np.isfinite(right).all(axis=1))
    if len(measured) < 2:
        return {}
    first, last = (data.isel(step=int(place)) for place in measured[[0, -1]])
    changes = group_changes(first, last)
    numbers = {
        "change_low": [c.low for c in changes],
        "change_high": [c.high for c in changes],
        "p_change": [c.p_uncorrected for c in changes],
        "above_chance_first": [c.above_before for c in changes],
    }
    return {name: ("group", np.array(values)) for name, values in numbers.items()}


def _learned(data: xr.Dataset) -> dict[str, Any]:
    """Return how likely each group ends so far above chance, and gained so much, by luck.

    The luck of examples, and that of motion, which two control runs or more show: of the group or
    of all groups, whichever is larger. Without them turned runs had a group that seemed learned on
    4 of 16 pages. What n-grams reach as well is learned, too: their level stands beside.
    """
    runs = data.get("run", xr.DataArray([], dims="run")).values
    null = np.array([kind_of(str(run)) not in NO_NULLS for run in runs], dtype=bool)
    if "p_change" not in data or "accuracy_control" not in data or null.sum() < 2:
        return {}
    excess = data.accuracy_last - data.accuracy_chance
    rose = data.accuracy_last > data.accuracy_first
    # Who liked one of two words is right in half of all pairs: the sign test of two contrasts shows
    # no gain, but there was nothing above chance.
    low = data.accuracy_low.dropna("step", how="all").isel(step=0)
    nothing = (low <= data.accuracy_chance).values & rose.values
    gain = np.where(nothing, 0.0, np.where(rose, data.p_change.values / 2, 1.0))
    ends = data.accuracy_control.isel(run=null).dropna("step", how="all")
    if not ends.sizes["step"]:
        return {}
    luck = (ends.isel(step=-1) - data.accuracy_chance).transpose("group", "run").values
    luck = luck[:, np.isfinite(luck).all(axis=0)]  # one that diverged shows no luck
    if luck.shape[1] < 2:
        return {}
    texts = ((data.accuracy_last_high - data.accuracy_last_low).values / (2 * Z)) ** 2
    of_group, of_all = (luck**2).mean(axis=1, keepdims=True), max((luck**2).mean(), 1e-9)
    spread = np.sqrt(np.fmax(of_group / of_all, 1.0)) * luck.ravel()
    p_values = [data.p_chance.values, gain, p_by_luck(excess.values, texts, spread)]
    # One example alone shows nothing.
    return {"accuracy_p_learned": ("group", np.nan_to_num(np.maximum.reduce(p_values), nan=1.0))}


def group_figures(data: xr.Dataset) -> list[Figure]:
    """Return a map of the groups over the steps, where they are too many for curves."""
    if data.sizes.get("group", 0) <= _CURVES or data.sizes["step"] < 2:
        return []
    title = "Share that is right, groups in the order in which they leave chance"
    return [Heatmap("groups", title, value="accuracy", y="group")]


def group_words(data: xr.Dataset, what: str) -> list[str]:
    """Return what the order of all groups of a page does not say: of which there is no verdict.

    Parameters
    ----------
    data
        A node with what `with_courses` gives.
    what
        What its examples are, such as ``"pair"``.
    """
    if "examples" not in data:
        return []
    single = [str(name) for name in data.group.values[data.examples.values < 2]]
    if not single:
        return []
    names = single[:_NAMED] + [f"{len(single) - _NAMED:,} more"] * (len(single) > _NAMED)
    return [f"One {what} alone shows nothing, so that no verdict is given: {joined(names)}."]
