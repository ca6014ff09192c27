"""What several runs can do: abilities gained, lost, and in which order where the runs agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import xarray as xr

from ...words.abilities import Ability, abilities_of
from ...words.formats import joined, plain_text, plural, step_text
from .changes import GroupChange, corrected, group_changes

Courses = Mapping[tuple[str, str], Ability]
"""The groups of a run by node and name: two nodes may have a group of one name."""

# Groups that a sentence names.
_NAMED = 4
_NOT_BEYOND = "Of other examples of their kind that is not shown."


def words_of_runs(runs: Mapping[str, xr.DataTree]) -> list[str]:
    """Return what the runs can do: of two what the second gained and lost, of more their order.

    Gains and losses are those of the last steps, paired over examples and corrected over all
    groups. An order of groups is said only where intervals are apart in every run.
    """
    courses = [_course(tree) for tree in runs.values()]
    names = [name for name in courses[0] if all(name in course for course in courses)]
    if not names:
        return []
    words = _between(runs, courses) if len(runs) == 2 else _agreement(names, courses)
    return [*words, *_order(names, courses)]


def _course(tree: xr.DataTree) -> Courses:
    """Return the groups of a run by node and name."""
    return {(able.node, able.name): able for able in abilities_of(_nodes(tree))}


def _nodes(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    return {node.path.strip("/"): node.to_dataset() for node in tree.subtree}


def _between(runs: Mapping[str, xr.DataTree], courses: Sequence[Courses]) -> list[str]:
    """Say which groups the second run does surely better than the first, and which worse."""
    keys = {"right", "p_chance"}  # gaps have a ``right`` of their own
    of_runs = [_nodes(tree) for tree in runs.values()]
    nodes = [
        name for name in of_runs[0] if all(keys <= {*n.get(name, ())} for n in of_runs)
    ]
    ends = [[nodes_of[name].isel(step=-1) for nodes_of in of_runs] for name in nodes]
    uncorrected = []
    for node, pair in zip(nodes, ends, strict=True):
        for of_group in group_changes(*pair):
            key = (node, plain_text(of_group.change.name))
            uncorrected.append((of_group.change, courses[0][key], courses[1][key]))
    if not uncorrected:
        return []
    both = corrected([change for change, *_ in uncorrected])
    changes = [
        (replace(change, above_before=a.above, above_after=b.above), a, b)
        for change, (_, a, b) in zip(both, uncorrected, strict=True)
    ]
    one, two = runs
    over = f"corrected over {plural(len(changes), 'group')}"
    was = f", above chance in {one} since"
    told = {
        "gained": [_words(c, after, ", since") for c, _, after in changes if c.gained],
        "lost": [_words(c, before, was) for c, before, _ in changes if c.lost],
    }
    sentences = [
        f"{two} {verb} {len(some):,} against {one}, {over}: {'; '.join(some[:_NAMED])}."
        for verb, some in told.items()
        if some
    ]
    if not sentences:
        sentences = [
            f"{two} is not shown to have gained or lost abilities against {one}, {over}."
        ]
    return sentences + _on_these(
        [(c, before) for c, before, _ in changes if c.on_these]
    )


def _on_these(changes: Sequence[tuple[GroupChange, Ability]]) -> list[str]:
    """Say which groups differ on the examples that were asked, and not surely on others."""
    if not changes:
        return []
    some = [_words(change, able) for change, able in changes]
    more = [f"{len(some) - _NAMED:,} more"] if len(some) > _NAMED else []
    named = "; ".join([*some[:_NAMED], *more])
    how = f"differ on these examples (exact test of those that turned): {named}"
    return [
        f"{len(some):,} {'groups' if len(some) > 1 else 'group'} {how}. {_NOT_BEYOND}"
    ]


def _words(change: GroupChange, able: Ability, since: str = "") -> str:
    """Say a change, and since which step the run that is able is."""
    after = (
        f"{since} {{step}} {step_text(able.above_from)}"
        if since and able.above_from > 0
        else ""
    )
    ends = f"{100 * change.change.before:.0f} to {100 * change.change.after:.0f} %"
    return f"“{able.name}”, {ends}{after}"


def _quoted(names: Sequence[tuple[str, str]]) -> str:
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    return joined([*(f"“{name}”" for _, name in names[:_NAMED]), *more])


def _agreement(
    names: Sequence[tuple[str, str]], courses: Sequence[Courses]
) -> list[str]:
    """Say how many groups are above chance in all runs, in some, in none."""
    counts = [sum(course[name].above for course in courses) for name in names]
    some = [
        name
        for name, count in zip(names, counts, strict=True)
        if 0 < count < len(courses)
    ]
    number = counts.count(len(courses))
    verb = "is" if number == 1 else "are"
    every = f"{number:,} {verb} above chance in each of {len(courses)} runs"
    apart = f" In some only: {_quoted(some)}." if some else ""
    groups = f"{plural(len(names), 'group')} of examples"
    return [f"Of {groups}, {every}, {counts.count(0):,} in none.{apart}"]


def _order(names: Sequence[tuple[str, str]], courses: Sequence[Courses]) -> list[str]:
    """Say which groups left chance before which in every run, where intervals are apart."""
    after = {
        first: [
            name for name in names if all(c[first].before(c[name]) for c in courses)
        ]
        for first in names
    }
    first, later = max(after.items(), key=lambda name: len(name[1]))
    where = f"In each of {len(courses)} runs"
    return (
        [f"{where}, {_quoted([first])} left chance before {_quoted(later)}."]
        if later
        else []
    )
