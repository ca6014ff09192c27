"""Steps that are not there, and what was left behind or left out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from ..findings import Finding, join_steps, some
from ..opening import Catalogue

_ENOUGH = 2  # equal differences between steps that make a stretch evenly spaced


def missing(catalogue: Catalogue, reach: tuple[int, int]) -> Iterator[Finding]:
    """Yield steps that were asked for or planned, or that leave a hole between first and last."""
    for step, why in catalogue.gaps:
        yield Finding(
            "missing", "certain", (step,), f"{{step}} {step} is missing: {why}"
        )
    there = set(catalogue.steps) | {step for step, _ in catalogue.incomplete}
    if catalogue.planned is not None:
        absent = sorted(set(catalogue.planned) - there)
        certainty = "certain"
        why = "which the recorder had planned"
    else:
        absent = holes(sorted(there))
        certainty = "suspected"
        why = "in an otherwise evenly spaced stretch"
    steps = {step for step, _ in catalogue.gaps}
    absent = [s for s in absent if reach[0] <= s <= reach[1] and s not in steps]
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        text = f"{join_steps(absent)}, {why}, {verb} missing"
        yield Finding("missing", certainty, tuple(absent), text)


def holes(steps: Sequence[int]) -> list[int]:
    """Return the steps absent from the evenly spaced stretch of increasing `steps`.

    The stretch reaches from the first to the last occurrence of the commonest difference, if
    that occurs at least twice and every step in between lies on its grid.

    Examples
    --------
    >>> holes([0, 100, 200, 400, 500])
    [300]
    >>> holes([0, 1, 2, 4, 8, 16])
    []
    """
    pairs = list(itertools.pairwise(steps))
    counts = Counter(after - before for before, after in pairs)
    gap, count = max(
        counts.items(), key=lambda item: (item[1], -item[0]), default=(0, 0)
    )
    if count < _ENOUGH:
        return []
    first = next(before for before, after in pairs if after - before == gap)
    last = next(after for before, after in reversed(pairs) if after - before == gap)
    stretch = [step for step in steps if first <= step <= last]
    if any((step - first) % gap for step in stretch):
        return []
    return sorted(set(range(first, last, gap)) - set(stretch))


def left_behind(catalogue: Catalogue) -> Iterator[Finding]:
    """Yield what was found when the checkpoints were collected."""
    yield from catalogue.noted
    for step, why in catalogue.incomplete:
        yield Finding(
            "incomplete", "certain", (step,), f"{{step}} {step} is left out: {why}"
        )
    if catalogue.temporary:
        text = f"an interrupted save left {some(catalogue.temporary)} behind"
        yield Finding("temporary", "certain", (), text)
