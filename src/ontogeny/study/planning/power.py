"""What the control runs of a study can decide, said before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...control_kinds import MOTION, NO_NULLS, kind_of
from ...summary.controls import BORROWED
from ...summary.learning import MIRRORED
from ...summary.verdicts import LEVELS
from ...tails import t_limit
from ...words.formats import plural

ROWS = 20  # of a page, that examples are given for
MORE = 8  # control runs that they are given for


def what_controls_decide(runs: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """Return in words how far apart a row must lie to count, by the number of control runs.

    Parameters
    ----------
    runs
        Names of the control runs.
    kinds
        Those of the observables.

    Examples
    --------
    >>> learned, beyond = what_controls_decide(
    ...     ["turned 0", "turned 1", "turned 2"], ["loss"]
    ... )
    >>> learned
    'learned: the loss by renamed words, without control runs, unless the start is trained'
    >>> beyond.split(": ", 1)[1]
    'from 33 deviations of 3 control runs on, 9.4 in layers that move apart (of 8: 5.5, 4.9)'
    """
    nulls = [run for run in runs if kind_of(run) not in NO_NULLS]
    pairs = sum(kind_of(run) == MIRRORED for run in nulls) // 2
    lines = []
    if "loss" in kinds:
        start = "unless the start is trained"
        if pairs:
            times = f"{t_limit(LEVELS.control / 2, pairs):.1f} times their luck"  # half for a loss
            start = f"of a trained start by {plural(pairs, 'mirrored pair')}, from {times} on"
        lines.append(
            f"learned: the loss by renamed words, without control runs, {start}"
        )
    if pairs and "loss" not in kinds and all(kind_of(run) in MOTION for run in nulls):
        return [*lines, "beyond controls: not judged, as motion harms a trained start"]
    if len(nulls) < 2:
        return [
            *lines,
            f"beyond controls: not judged with {len(nulls)} control runs, take 3 or more",
        ]
    here, there = (
        [f"{distance:.2g}" for distance in _distances(n)] for n in (len(nulls), MORE)
    )
    of_more = f" (of {MORE}: {', '.join(there)})" if len(nulls) < MORE else ""
    far = f"from {here[0]} deviations of {len(nulls)} control runs on"
    layers = f"{here[1]} in layers that move apart"
    return [*lines, f"beyond controls, one of {ROWS} rows: {far}, {layers}{of_more}"]


def _distances(count: int) -> np.ndarray:
    """Return how far a row of one quantity, and one of several layers, must lie (2,).

    Its change and its half-change step are two tests, each two-sided.
    """
    freedom = np.array([count - 1, count - 1 + BORROWED * (count > 2)])
    distances: np.ndarray = t_limit(LEVELS.control / (4 * ROWS), freedom) * np.sqrt(
        1 + 1 / count
    )
    return distances
