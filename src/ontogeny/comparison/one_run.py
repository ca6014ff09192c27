"""Runs of a comparison that are one run: that they agree says nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ..trajectory.audit.kept_samples import updates_alike
from ..trajectory.findings import Finding, join_steps
from .sources import Run

_ONE = 0.99  # correlation of updates: other seeds, or another order of the texts, stay below


def runs_that_are_one(runs: Sequence[Run]) -> list[Finding]:
    """Return which runs have the same weights at steps after their first, or the same updates.

    The first checkpoint that two runs have in common may be the same by right: a base, or one
    initialisation.
    """
    findings = []
    for one, other in itertools.combinations(runs, 2):
        names = f"{one.name!r} and {other.name!r}"
        if same := _same_steps(one, other):
            text = f"{names} hold the same weights at {join_steps(same)}, byte for byte"
            text += ": they are one run until there, and count as one"
            if _digests(one) == _digests(other):
                text = f"{names} are the same checkpoints, so that their agreement says nothing"
            findings.append(Finding("one-run", "certain", same, text))
            continue
        alike = updates_alike(*(run.attribute("samples", {}) for run in (one, other)))
        if alike is not None and alike.correlation > _ONE:
            text = (
                f"{names} are hardly two runs: their updates from {{step}} {alike.first} to "
                f"{alike.last} correlate by {alike.correlation:.4f}, so that their agreement says "
                "little"
            )
            findings.append(
                Finding("one-run", "suspected", (alike.first, alike.last), text)
            )
    return findings


def _same_steps(one: Run, other: Run) -> tuple[int, ...]:
    """Return the steps at which two runs have the same weights, without the first in common."""
    first = _digests(one)
    second = _digests(other)
    common = sorted(map(int, first.keys() & second.keys()))
    return tuple(step for step in common[1:] if first[str(step)] == second[str(step)])


def _digests(run: Run) -> Mapping[str, str]:
    digests: Mapping[str, str] = run.attribute("trajectory", {}).get("digests", {})
    return digests
