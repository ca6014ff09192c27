"""What several runs can do: abilities gained, lost, and in which order where the runs agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject, measurement
from ...words.abilities import Ability, abilities_of
from ...words.formats import plain_text
from .changes import GroupChange, corrected, group_changes

Name = tuple[str, str]
Courses = Mapping[Name, Ability]
"""The groups of a run by node and name: two nodes may have a group of one name."""


def claims_of_runs(runs: Mapping[str, xr.DataTree]) -> list[Claim]:
    """Return what the runs can do: of two what the second gained and lost, of more their order.

    Gains and losses are those of the last steps, paired over examples and corrected over all
    groups. An order of groups is claimed only where intervals are apart in every run.
    """
    if len(runs) < 2:
        return []
    courses = [_course(tree) for tree in runs.values()]
    names = [name for name in courses[0] if all(name in course for course in courses)]
    if not names:
        return []
    claims = _between(runs, courses) if len(runs) == 2 else _agreement(names, courses)
    return [*claims, *_order(names, courses)]


def _course(tree: xr.DataTree) -> Courses:
    """Return the groups of a run by node and name."""
    return {(able.node, able.name): able for able in abilities_of(_nodes(tree))}


def _nodes(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    return {node.path.strip("/"): node.to_dataset() for node in tree.subtree}


def _between(
    runs: Mapping[str, xr.DataTree], courses: Sequence[Courses]
) -> Iterator[Claim]:
    """Give which groups the second run does surely better than the first, and which worse."""
    keys = {"right", "p_chance"}  # gaps have a ``right`` of their own
    of_runs = [_nodes(tree) for tree in runs.values()]
    nodes = [
        name for name in of_runs[0] if all(keys <= {*n.get(name, ())} for n in of_runs)
    ]
    first = next(iter(runs))
    found: dict[Name, GroupChange] = {}
    for node in nodes:
        ends = [nodes_of[node].isel(step=-1) for nodes_of in of_runs]
        for each in group_changes(*ends):
            found[node, plain_text(each.change.name)] = each
    both = corrected([each.change for each in found.values()])
    changes = dict(zip(found, both, strict=True))
    told: list[Claim] = []
    for name, change in changes.items():
        told += _changed(name, change, courses, first, len(changes))
    if nodes and not told:
        beside = (Beside("reference", first),)
        none = Subject(nodes[0], "right")
        yield Claim(
            Kind.GAINED, none, Certainty.OPEN, Reason.WITHIN_CHANCE, beside=beside
        )
    yield from told


def _changed(
    name: Name, change: GroupChange, courses: Sequence[Courses], first: str, tests: int
) -> Iterator[Claim]:
    """Give what became of one group from the first run to the second, if that is shown."""
    before, after = (course[name] for course in courses)
    change = replace(change, above_before=before.above, above_after=after.above)
    kinds = {
        Kind.GAINED: change.gained,
        Kind.LOST: change.lost,
        Kind.CHANGED_ON_ITEMS: change.on_these,
    }
    node, label = name
    one = change.change
    is_dated = change.gained and after.above_from > 0
    more: dict[str, Any] = {"since": after.above_from} if is_dated else {}
    for kind in filter(kinds.__getitem__, kinds):
        on_items = kind is Kind.CHANGED_ON_ITEMS
        yield Claim(
            kind,
            Subject(node, "right", label=label),
            Certainty.SURE,
            first=one.before,
            last=one.after,
            value=one.after - one.before,
            low=one.low,
            high=one.high,
            p_value=change.p_turned if on_items else change.p_value,
            corrected_over=tests,
            beside=(Beside("reference", first, one.before, one.after),),
            evidence=(f"{node}/right",),
            **more,
        )


def _agreement(names: Sequence[Name], courses: Sequence[Courses]) -> Iterator[Claim]:
    """Give how many groups are above chance in all runs, and which in some."""
    counts = {name: sum(course[name].above for course in courses) for name in names}
    for node in dict.fromkeys(node for node, _ in names):
        of_node = {label: n for (of, label), n in counts.items() if of == node}
        every = [label for label, n in of_node.items() if n == len(courses)]
        some = [label for label, n in of_node.items() if 0 < n < len(courses)]
        subject = Subject(node, "p_chance")
        yield measurement(subject, len(every), whole=len(of_node))
        if some:
            subject = Subject(node, "above_chance")
            yield measurement(subject, len(some), whole=len(of_node), parts=some)


def _order(names: Sequence[Name], courses: Sequence[Courses]) -> Iterator[Claim]:
    """Give which group left chance before which in every run, where intervals are apart."""
    after = {
        first: [
            name for name in names if all(c[first].before(c[name]) for c in courses)
        ]
        for first in names
    }
    (node, label), later = max(after.items(), key=lambda name: len(name[1]))
    if later:
        subject = Subject(node, "above_from", label=label)
        yield measurement(subject, len(later), parts=[name for _, name in later])
