"""Claims of several runs: those of each run under its name, which join by their subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..claims import Claim
from ..summary.claims import claims_of_result
from .sources import Run


def claims_of_runs(runs: Sequence[Run]) -> list[Claim]:
    """Return what the runs claim, each claim with its run, what matters most first."""
    claims = [
        replace(claim, subject=replace(claim.subject, run=run.name))
        for run in runs
        for claim in claims_of_result(run.tree)
    ]
    return sorted(claims, key=lambda claim: -claim.weight)
