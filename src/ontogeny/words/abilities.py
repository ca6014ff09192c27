"""Abilities of a page: groups of examples with a right answer, of whatever node, in one order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from .content import Node
from .formats import plain_text

LEVEL = 0.05
"""Over all groups of the page."""


@dataclass(frozen=True)
class Ability:
    """One group at the end of a run; NaN where a number is not known.

    ``gained`` and ``lost`` are of the first step against the last, paired over examples, and of a
    group that is above chance afterwards or was before.
    """

    name: str
    node: str
    accuracy: float
    low: float
    high: float
    first: float
    chance: float
    ngrams: float
    controls: tuple[float, ...]
    above: bool
    above_from: float
    above_from_low: float
    change_low: float
    change_high: float
    gained: bool
    lost: bool


def has_abilities(data: xr.Dataset) -> bool:
    """Return whether a node holds groups with an accuracy that was held against chance."""
    return {"accuracy", "p_chance", "above_from"} <= set(data.data_vars) and "run" not in (
        data.accuracy.dims
    )


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
    above = _level([float(group.p_chance) for _, group in pairs])
    changed = _level([float(group.get("p_change", math.nan)) for _, group in pairs])
    several = len({node.id for node, _ in pairs}) > 1
    some = [
        _ability(node, group, bool(a), bool(c), several)
        for (node, group), a, c in zip(pairs, above, changed, strict=True)
    ]
    return sorted(some, key=_order)


def _level(p_values: Sequence[float]) -> list[bool]:
    """Return which tests hold at `LEVEL` over all of them, by Holm's method; not those of NaN."""
    values = np.array(p_values, dtype=float)
    order = [place for place in np.argsort(values) if math.isfinite(values[place])]
    passed = values[order] * np.arange(len(order), 0, -1) <= LEVEL
    holds = np.zeros(len(values), dtype=bool)
    holds[order] = np.logical_and.accumulate(passed)
    return holds.tolist()


def _order(ability: Ability) -> tuple[float, float]:
    known = ability.above and math.isfinite(ability.above_from)
    return (ability.above_from if known else math.inf, -ability.accuracy)


def _ability(node: Node, group: xr.Dataset, above: bool, changed: bool, several: bool) -> Ability:
    def number(name: str) -> float:
        return float(group[name]) if name in group else math.nan

    name = plain_text(group.group.item())
    accuracy, first = number("accuracy_last"), number("accuracy_first")
    return Ability(
        name=f"{name} ({node.title})" if several and name == node.title else name,
        node=node.id,
        accuracy=accuracy,
        low=number("accuracy_last_low"),
        high=number("accuracy_last_high"),
        first=first,
        chance=number("accuracy_chance"),
        ngrams=number("accuracy_ngrams"),
        controls=_of_controls(group),
        above=above,
        above_from=number("above_from") if above else math.nan,
        above_from_low=number("above_from_low") if above else math.nan,
        change_low=number("change_low"),
        change_high=number("change_high"),
        gained=changed and accuracy > first and above,
        lost=changed and accuracy < first and bool(group.get("above_chance_first", False)),
    )


def _of_controls(group: xr.Dataset) -> tuple[float, ...]:
    """Return the accuracy of each control run at its last step."""
    if "accuracy_control" not in group:
        return ()
    runs = group.accuracy_control.transpose("run", "step").values
    return tuple(float(row[np.isfinite(row)][-1]) for row in runs if np.isfinite(row).any())
