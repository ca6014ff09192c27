"""What changed between two states of a model: groups of examples, paired, corrected over groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...dynamics import holm
from .contrasts import Ties, ties_of_words
from .exact_tests import p_changed
from .intervals import (
    LEVEL,
    Chance,
    above_chance,
    change_interval,
    p_turned,
    p_wandering,
)


def chance_of(
    node: xr.Dataset, dim: str, chance: np.ndarray, members: np.ndarray
) -> Chance:
    """Return how likely some examples of a node are right by chance, and which go together."""
    if "word_right" in node:
        words = (node[name].values[members] for name in ("word_right", "word_wrong"))
        return Chance(chance[members], ties_of_words(*words), of_words=True)
    clusters = node.cluster.values if "cluster" in node else np.arange(node.sizes[dim])
    return Chance(chance[members], Ties.of_clusters(clusters[members]))


@dataclass(frozen=True)
class Change:
    """How the accuracy on one group differs between two states of a model.

    Parameters
    ----------
    name
        The group.
    before, after
        Accuracy, 0 to 1.
    low, high
        95 % interval of the change over clusters; NaN of one.
    p_value
        Of no change beyond these examples, by exchanges over clusters.
    p_turned
        Of no change on these examples, by McNemar's exact test.
    p_before, p_after
        Of each state against chance.
    """

    name: str
    before: float
    after: float
    low: float
    high: float
    p_value: float
    p_turned: float
    p_before: float
    p_after: float

    @classmethod
    def of(
        cls, name: str, before: np.ndarray, after: np.ndarray, chance: Chance
    ) -> Change:
        """Return the change between what is right before and after (n,)."""
        change = after - before
        known = np.isfinite(change).all() and len(change) > 1
        return cls(
            name,
            float(before.mean()),
            float(after.mean()),
            *change_interval(change, chance.ties),
            p_changed(np.sign(change), chance.ties) if known else math.nan,
            p_turned(change),
            chance.p_value(before),
            chance.p_value(after),
        )


def p_on_these(right: np.ndarray) -> float:
    """Return the p-value of no change from the first to the last of (T, n) on these examples.

    The larger one of McNemar's exact test and of the moves between checkpoints.

    Examples
    --------
    >>> p_on_these(np.array([[0] * 8, [1] * 8, [0] * 8, [1] * 8])) > 0.3
    True
    """
    known = right[np.isfinite(right).all(axis=1)]
    if len(known) < 2:
        return math.nan
    return max(p_turned(known[-1] - known[0]), p_wandering(known))


@dataclass(frozen=True)
class GroupChange:
    """A change of a group beside those of all groups, over which it is corrected.

    Parameters
    ----------
    change
        The change by itself.
    p_value, p_turned
        Its p-values beyond these examples and on these examples, corrected over the groups.
    above_before, above_after
        Whether it was above chance, corrected over the groups.
    """

    change: Change
    p_value: float
    p_turned: float
    above_before: bool
    above_after: bool

    @property
    def gained(self) -> bool:
        """Whether it surely rose, and ends above chance."""
        return self.p_value <= LEVEL and self.rose and self.above_after

    @property
    def lost(self) -> bool:
        """Whether it surely fell, and was above chance."""
        return self.p_value <= LEVEL and not self.rose and self.above_before

    @property
    def on_these(self) -> bool:
        """Whether it changed on these examples, and is not shown to have changed beyond them."""
        return self.p_turned <= LEVEL < self.p_value

    @property
    def rose(self) -> bool:
        """Whether more are right afterwards."""
        return self.change.after > self.change.before


def group_changes(before: xr.Dataset, after: xr.Dataset) -> list[GroupChange]:
    """Return how each group differs between two states, in the order of the groups.

    Parameters
    ----------
    before, after
        A node of abilities at one step each, of one run or of two, with ``right`` over the
        examples. Only groups of which both hold the same examples are compared.

    Examples
    --------
    >>> node = xr.Dataset(
    ...     {
    ...         "right": (("step", "pair"), [[0, 1] * 10, [1] * 20]),
    ...         "group_of_pair": ("pair", ["tense"] * 20),
    ...         "accuracy_chance": ("group", [0.5]),
    ...     },
    ...     {"group": ["tense"]},
    ... )
    >>> (tense,) = group_changes(node.isel(step=0), node.isel(step=1))
    >>> tense.gained, tense.change.before, tense.change.after, round(tense.p_value, 3)
    (True, 0.5, 1.0, 0.002)
    """
    (dim,) = before.right.dims
    ours = _of_groups(before)
    theirs = _of_groups(after)
    changes = []
    for name, place in ours.items():
        other = theirs.get(name, place[:0])
        if not _same_examples(before, place, after, other):
            continue
        level = float(before.accuracy_chance.sel(group=name))
        chance = chance_of(before, str(dim), np.full(before.sizes[dim], level), place)
        one = before.right.values[place].astype(float)
        two = after.right.values[other].astype(float)
        changes.append(Change.of(name, one, two, chance))
    return corrected(changes)


def corrected(changes: Sequence[Change]) -> list[GroupChange]:
    """Return changes corrected over all of them, by Holm's method."""
    p_value, p_alone = (
        holm([getattr(change, name) for change in changes]).tolist()
        for name in ("p_value", "p_turned")
    )
    was, now = (
        above_chance(np.array([getattr(change, name) for change in changes])).tolist()
        for name in ("p_before", "p_after")
    )
    return [
        GroupChange(*each)
        for each in zip(changes, p_value, p_alone, was, now, strict=True)
    ]


def _of_groups(node: xr.Dataset) -> dict[str, np.ndarray]:
    """Return the places of the examples of each group."""
    (dim,) = node.right.dims
    of_example = np.array(
        [str(name) for name in node[f"group_of_{dim}"].values], dtype=object
    )
    return {
        str(name): np.flatnonzero(of_example == str(name)) for name in node.group.values
    }


def _same_examples(
    one: xr.Dataset, place: np.ndarray, other: xr.Dataset, there: np.ndarray
) -> bool:
    """Return whether two nodes hold the same texts at these places."""
    if len(place) != len(there):
        return False
    names = ("prompt", "right_text", "wrong_text", "answer_text")
    pairs = [
        (one[name].values[place], other[name].values[there])
        for name in names
        if name in one and name in other and one[name].dims == one.right.dims
    ]
    return all(list(map(str, a)) == list(map(str, b)) for a, b in pairs)
