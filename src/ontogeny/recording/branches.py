"""Steps that a recording holds from before its run went back, as its note names them.

Each branch is ``{"resumed": step, "abandoned": steps}``: the run went on from a step although later
ones had been written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

Branches: TypeAlias = list[dict[str, Any]]


def branched(
    branches: Sequence[dict[str, Any]], step: int, later: Collection[int]
) -> Branches:
    """Return the branches of a run that goes back to `step`, though `later` steps are on disk.

    Steps that an earlier branch names stay its own.

    Examples
    --------
    >>> branched([{"resumed": 50, "abandoned": [90]}], 60, {70, 80, 90})
    [{'resumed': 50, 'abandoned': [90]}, {'resumed': 60, 'abandoned': [70, 80]}]
    """
    left = sorted(set(later).difference(*(b["abandoned"] for b in branches)))
    return [*branches, {"resumed": step, "abandoned": left}] if left else list(branches)


def replaced(branches: Sequence[dict[str, Any]], step: int) -> Branches:
    """Return the branches without a step that the run has written anew.

    Examples
    --------
    >>> replaced([{"resumed": 50, "abandoned": [60, 70]}], 60)
    [{'resumed': 50, 'abandoned': [70]}]
    """
    left = [
        {**b, "abandoned": [s for s in b["abandoned"] if s != step]} for b in branches
    ]
    return [branch for branch in left if branch["abandoned"]]


def repeated(branches: Sequence[dict[str, Any]], step: int) -> Branches:
    """Return the branches without the one of a step that the run has reached alike once more.

    A run that repeats itself there does so after it.

    Examples
    --------
    >>> repeated([{"resumed": 50, "abandoned": [60, 70]}], 60)
    []
    """
    return [branch for branch in branches if step not in branch["abandoned"]]
