"""What several runs can do: abilities gained, lost, and in which order where the runs agree."""

from __future__ import annotations

from collections.abc import Sequence

from ..features.abilities.changes import GroupChange, group_changes
from ..words.abilities import Ability, abilities_of
from ..words.content import read_content
from ..words.formats import joined, plural, step_text
from .sources import Run

_NAMED = 4
"""Groups that a sentence names."""


def ability_words(runs: Sequence[Run]) -> list[str]:
    """Return what the runs can do: of two what the second gained and lost, of more their order.

    Gains and losses are those of the last steps, paired over examples and corrected over the groups
    of a node. An order of groups is said only where intervals are apart in every run.
    """
    courses = [{a.name: a for a in abilities_of(read_content(run.tree).nodes)} for run in runs]
    names = [name for name in courses[0] if all(name in course for course in courses)]
    if not names:
        return []
    words = _between(runs, courses) if len(runs) == 2 else _agreement(names, courses)
    return [*words, *_order(names, courses)]


def _between(runs: Sequence[Run], courses: Sequence[dict[str, Ability]]) -> list[str]:
    """Say which groups the second run does surely better than the first, and which worse."""
    keys = {"right", "p_chance"}  # gaps have a ``right`` of their own
    nodes = [name for name in runs[0].nodes if all(keys <= {*r.nodes.get(name, ())} for r in runs)]
    ends = [[run.nodes[name].isel(step=-1) for run in runs] for name in nodes]
    changes = [change for pair in ends for change in group_changes(*pair)]
    if not changes:
        return []
    one, two = (run.name for run in runs)
    over = f"corrected over {plural(len(changes), 'group')}"
    sentences = [
        f"{two} {verb} {len(some):,} against {one}, {over}: {'; '.join(some[:_NAMED])}."
        for verb, some in (
            ("gained", [_words(change, courses[1]) for change in changes if change.gained]),
            ("lost", [_words(change, courses[0]) for change in changes if change.lost]),
        )
        if some
    ]
    return sentences or [
        f"{two} is not shown to have gained or lost abilities against {one}, {over}."
    ]


def _words(change: GroupChange, course: dict[str, Ability]) -> str:
    """Say a change, and since which step the run that is able is."""
    able = course[change.name]
    since = f", since step {step_text(able.above_from)}" if able.above_from > 0 else ""
    ends = f"{100 * change.before:.0f} to {100 * change.after:.0f} %"
    return f"{_quoted([change.name])}, {ends}{since}"


def _quoted(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED:,} more"] * (len(names) > _NAMED)
    return joined([*(f"“{name}”" for name in names[:_NAMED]), *more])


def _agreement(names: Sequence[str], courses: Sequence[dict[str, Ability]]) -> list[str]:
    """Say how many groups are above chance in all runs, in some, in none."""
    counts = [sum(course[name].above for course in courses) for name in names]
    some = [name for name, count in zip(names, counts, strict=True) if 0 < count < len(courses)]
    every = f"{counts.count(len(courses)):,} are above chance in each of {len(courses)} runs"
    apart = f" In some only: {_quoted(some)}." if some else ""
    return [f"Of {plural(len(names), 'group')}, {every}, {counts.count(0):,} in none.{apart}"]


def _order(names: Sequence[str], courses: Sequence[dict[str, Ability]]) -> list[str]:
    """Say which groups left chance before which in every run, where intervals are apart."""
    after = {
        first: [name for name in names if all(c[first].before(c[name]) for c in courses)]
        for first in names
    }
    first, later = max(after.items(), key=lambda name: len(name[1]))
    where = f"In each of {len(courses)} runs"
    return [f"{where}, {_quoted([first])} left chance before {_quoted(later)}."] if later else []
